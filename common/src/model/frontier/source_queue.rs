//! The queues that workers take messages from, each first in, first out.

use crate::frontier::lane::Lane;

/// A queue that workers take from, in the order in which they empty them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::IntoStaticStr, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum SourceQueue {
    /// Parked URLs that are due.
    Due,
    /// The lane of urgent URLs.
    Priority,
    /// Messages that outlived their lane's time to live. Settling them takes no fetch.
    Expired,
    /// The lane of tasks. Workers that run no programs leave it alone.
    Task,
    /// The lane of all other URLs.
    Bulk,
}

impl SourceQueue {
    /// Every queue, the most urgent first.
    pub const ALL: [Self; 5] = [Self::Due, Self::Priority, Self::Expired, Self::Task, Self::Bulk];
    /// The queues that bring URLs. Parked and expired messages may also be tasks.
    pub const OF_URLS: [Self; 4] = [Self::Due, Self::Priority, Self::Expired, Self::Bulk];

    /// Returns the queue's name in the store.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl From<Lane> for SourceQueue {
    fn from(lane: Lane) -> Self {
        match lane {
            Lane::Priority => Self::Priority,
            Lane::Bulk => Self::Bulk,
            Lane::Task => Self::Task,
        }
    }
}

//! Lines: what workers take messages from, each first in, first out.

use crate::frontier::lane::Lane;

/// A queue that workers take from, in the order in which they empty them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::IntoStaticStr, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum SourceQueue {
    /// Parked URLs whose time has come.
    Due,
    /// The lane of urgent URLs.
    Priority,
    /// What outlived its lane's time to live. To settle it costs no fetch.
    Expired,
    /// The lane of tasks. Workers that run no programs leave it alone.
    Task,
    /// The lane of all other URLs.
    Bulk,
}

impl SourceQueue {
    /// Every line, the most urgent first.
    pub const ALL: [Self; 5] = [Self::Due, Self::Priority, Self::Expired, Self::Task, Self::Bulk];
    /// Those that bring URLs. What was put aside and what expired may be tasks as well.
    pub const OF_URLS: [Self; 4] = [Self::Due, Self::Priority, Self::Expired, Self::Bulk];

    /// The line's name in the store.
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

//! Lanes: the work queues that a URL can be routed to, and the one of tasks.

use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::frontier::Work;

/// A work queue. Workers empty `Priority` before they take from `Bulk`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Lane {
    /// Fresh or urgent URLs: `priority_queue`.
    Priority,
    /// All others: `url_queue_ttl`.
    #[default]
    Bulk,
    /// Tasks: `task_queue`. No URL is routed to it.
    Task,
}

impl Lane {
    /// Every lane, the most urgent first.
    pub const ALL: [Self; 3] = [Self::Priority, Self::Bulk, Self::Task];
    /// Those that a URL can be routed to.
    pub const OF_URLS: [Self; 2] = [Self::Priority, Self::Bulk];

    /// The lane's name in settings, headers and records.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The lane that work takes for which somebody names this one: that of tasks is for tasks, and for nothing else.
    pub fn of(self, work: &Work) -> Self {
        match (work, self) {
            (Work::Task(_), _) => Self::Task,
            (Work::Url(_) | Work::Request(_), Self::Task) => Self::Bulk,
            (Work::Url(_) | Work::Request(_), lane) => lane,
        }
    }

    /// Reads a lane that a URL can be routed to.
    pub fn of_urls<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Self::deserialize(deserializer)? {
            Self::Task => Err(de::Error::custom("a URL is routed to `priority` or `bulk`")),
            lane => Ok(lane),
        }
    }
}

impl FromStr for Lane {
    type Err = UnknownLane;
    fn from_str(text: &str) -> Result<Self, UnknownLane> {
        Self::ALL.into_iter().find(|lane| lane.as_str() == text).ok_or(UnknownLane)
    }
}

/// A text that names no lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a lane is `priority`, `bulk` or `task`")]
pub struct UnknownLane;

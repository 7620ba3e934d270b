//! Lanes: the work queues that a URL can be routed to.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

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
}

impl Lane {
    /// Every lane, the most urgent first.
    pub const ALL: [Self; 2] = [Self::Priority, Self::Bulk];

    /// The lane's name in settings, headers and records.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl FromStr for Lane {
    type Err = UnknownLane;
    fn from_str(text: &str) -> Result<Self, UnknownLane> {
        Self::ALL.into_iter().find(|lane| lane.as_str() == text).ok_or(UnknownLane)
    }
}

/// A lane's name that is neither `priority` nor `bulk`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a lane is `priority` or `bulk`")]
pub struct UnknownLane;

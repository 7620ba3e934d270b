//! Lanes: the work queues that URLs are routed to, and the one of tasks.

use std::cmp::Ordering;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::frontier::Work;
use crate::priority::Priority;

/// A work queue. Workers empty `Priority` before they take from `Bulk`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Lane {
    /// Fresh or urgent URLs: `priority_queue`.
    Priority,
    /// All other URLs: `url_queue_ttl`.
    #[default]
    Bulk,
    /// Tasks: `task_queue`. No URL is routed to it.
    Task,
}

impl Lane {
    /// Every lane, the most urgent first.
    pub const ALL: [Self; 3] = [Self::Priority, Self::Bulk, Self::Task];
    /// The lanes that a URL can be routed to.
    pub const OF_URLS: [Self; 2] = [Self::Priority, Self::Bulk];

    /// Returns the lane's name in settings, headers and records.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the lane that `work` takes if somebody names this one. Tasks always take the lane of tasks, which
    /// takes nothing else. A request with a priority is routed by that.
    pub fn of(self, work: &Work) -> Self {
        match (work, work.priority().cmp(&Priority::default())) {
            (Work::Task(_), _) => Self::Task,
            (Work::Request(_), Ordering::Greater) => Self::Priority,
            (Work::Request(_), Ordering::Less) => Self::Bulk,
            (Work::Url(_) | Work::Request(_), _) if self == Self::Task => Self::Bulk,
            (Work::Url(_) | Work::Request(_), _) => self,
        }
    }

    /// Deserializes a lane that a URL can be routed to.
    pub(crate) fn of_urls<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
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

/// The error for a text that names no lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a lane is `priority`, `bulk` or `task`")]
pub struct UnknownLane;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::NewRequest;

    #[test]
    fn a_request_that_says_how_urgent_it_is_takes_a_lane_by_that_and_any_other_the_one_that_is_named() {
        let request = |priority: f64| {
            let priority = priority.try_into().unwrap();
            let new = NewRequest { priority, retries: Some(1), ..NewRequest::get("/") };
            Work::of_request("http://a.example/".parse().unwrap(), new).unwrap()
        };
        let lanes = |named: Lane| [-0.5, 0.0, 0.5].map(|priority| named.of(&request(priority)));
        assert_eq!(lanes(Lane::Bulk), [Lane::Bulk, Lane::Bulk, Lane::Priority]);
        assert_eq!(lanes(Lane::Priority), [Lane::Bulk, Lane::Priority, Lane::Priority]);
        let url = Work::Url("http://a.example/".parse().unwrap());
        assert_eq!(Lane::ALL.map(|named| named.of(&url)), [Lane::Priority, Lane::Bulk, Lane::Bulk]);
    }
}

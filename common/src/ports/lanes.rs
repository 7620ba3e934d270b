//! The lanes of an engine, as people see them: what waits in each, and for how long.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::frontier::source_queue::SourceQueue;

/// A place where messages wait: for a worker, for their time, or for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::Display, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum LaneName {
    /// Snoozed URLs that are due again: `due_queue`.
    Due,
    /// Fresh or urgent URLs: `priority_queue`.
    Priority,
    /// All other URLs: `url_queue_ttl`.
    Bulk,
    /// Snoozed URLs that are not due yet: all queues `wait.<seconds>` together.
    Wait,
    /// Messages that outlived their lane's time to live, and are settled next: `expired_urls`.
    Expired,
    /// Dead letters, for other programs to read: `failed_urls`.
    Failed,
    /// Wake-ups for jobs: `crawl_jobs`. In a state file, the waiting jobs.
    Jobs,
}

impl LaneName {
    /// Every lane, in the order in which a URL passes them.
    pub const ALL: [Self; 7] =
        [Self::Due, Self::Priority, Self::Bulk, Self::Wait, Self::Expired, Self::Failed, Self::Jobs];

    /// Returns the lane's name in metrics and JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the queue of workers that is served from it, if any.
    pub fn source_queue(self) -> Option<SourceQueue> {
        match self {
            Self::Due => Some(SourceQueue::Due),
            Self::Priority => Some(SourceQueue::Priority),
            Self::Bulk => Some(SourceQueue::Bulk),
            Self::Expired => Some(SourceQueue::Expired),
            Self::Wait | Self::Failed | Self::Jobs => None,
        }
    }
}

/// The state of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LaneState {
    /// The lane.
    pub lane: LaneName,
    /// Number of messages that wait, without those that workers hold.
    pub messages: u64,
    /// Number of connections that take messages from it; `None` if that is not meaningful.
    pub consumers: Option<u64>,
    /// The wait of the next message so far, at most; `None` if none waits, or if it is not known.
    #[serde(rename = "oldest_seconds", serialize_with = "seconds")]
    pub oldest: Option<Duration>,
}

fn seconds<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs_f64()).serialize(serializer)
}

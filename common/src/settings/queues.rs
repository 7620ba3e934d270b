//! `[queues]`: the queues on the broker, and how messages are acknowledged.

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::as_text::{as_text, text};
use crate::duration::{self, minutes};
use crate::frontier::lane::Lane;

/// `[queues]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queues {
    /// The type of every queue that trawl declares.
    #[serde(rename = "type")]
    pub kind: QueueType,
    /// Whether queues are declared, or used as they are.
    pub topology: Topology,
    /// Queues of other programs with bare URLs, consumed like the bulk lane's.
    #[serde(default)]
    pub listen: Vec<QueueName>,
    /// The bulk lane, `url_queue_ttl`.
    pub bulk: LaneSettings,
    /// The priority lane, `priority_queue`.
    pub priority: LaneSettings,
    /// The dead letters, `failed_urls`.
    pub failed: Failed,
}

impl Queues {
    /// Returns when the messages of a lane are acknowledged. A task's message is acknowledged only after the task has
    /// ended, because a task may be very expensive to repeat.
    pub fn acks(&self, lane: Lane) -> Acks {
        match lane {
            Lane::Priority => self.priority.acks,
            Lane::Bulk => self.bulk.acks,
            Lane::Task => Acks::Late,
        }
    }
}

impl Default for Queues {
    fn default() -> Self {
        Self {
            kind: QueueType::Quorum,
            topology: Topology::Declare,
            listen: Vec::new(),
            bulk: LaneSettings { ttl: minutes(60), acks: Acks::Late },
            priority: LaneSettings { ttl: minutes(30), acks: Acks::Early },
            failed: Failed::default(),
        }
    }
}

/// `queues.type`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum QueueType {
    /// Replicated and durable.
    Quorum,
    /// One copy.
    Classic,
}

impl QueueType {
    /// The value of the argument `x-queue-type`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// `queues.topology`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Topology {
    /// Queues and exchanges are declared; existing ones with other arguments are an error.
    Declare,
    /// Existing queues are used as they are, whatever their arguments. Missing queues of trawl's own are declared, if
    /// that is allowed; the lanes of URLs and the queue of dead letters are declared by the other program.
    Passive,
}

/// `[queues.bulk]` and `[queues.priority]`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneSettings {
    /// Maximum time that a message stays in the lane: then one of another program expires, and one of trawl's is
    /// processed at once.
    #[serde(with = "duration")]
    pub ttl: Duration,
    /// When the messages of the lane are acknowledged.
    pub acks: Acks,
}

/// When a message is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Acks {
    /// After the URL's terminal state is durable.
    Late,
    /// When its fetch starts: faster, but a killed worker's URLs return only when their leases have lapsed.
    Early,
    /// On arrival, like the broker's automatic acknowledgement: a URL without a record is lost with its worker.
    None,
}

/// `[queues.failed]`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    /// How long the queue keeps dead letters.
    #[serde(with = "duration")]
    pub ttl: Duration,
}

impl Default for Failed {
    fn default() -> Self {
        Self { ttl: minutes(24 * 60) }
    }
}

/// The name of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct QueueName(String);

/// The error of a text that is not a queue name, or one that is reserved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the name of a queue: it has 1 to 255 bytes and does not begin with `amq.`")]
pub struct NoQueueName(String);

impl FromStr for QueueName {
    type Err = NoQueueName;
    fn from_str(text: &str) -> Result<Self, NoQueueName> {
        let is_name = (1..=255).contains(&text.len()) && !text.starts_with("amq.");
        if is_name { Ok(Self(text.to_owned())) } else { Err(NoQueueName(text.chars().take(64).collect())) }
    }
}

text!(QueueName);
as_text!(QueueName);

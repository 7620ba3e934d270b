//! Answers of the transitions.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::frontier::outcome::{Class, Failure, Outcome, Reason, Skip};
use crate::time::UnixMs;

/// The reply to a claim: what a worker is to do with a message that it received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimReply {
    /// Handle it: this worker now holds the record.
    Take {
        /// Failed attempts so far.
        attempts: u32,
        /// Number of fetches of it that began and never ended.
        starts: u32,
        /// The time from which it is no longer worth fetching: the record's deadline, moved by the pauses of its
        /// crawl.
        deadline: Option<UnixMs>,
    },
    /// Publish it once more, then acknowledge it: the store had forgotten the crawl and has only now learnt of
    /// this URL. This way the store knows everything that is queued once the queue has been gone through, long
    /// before all of it is fetched.
    SendAgain,
    /// Snooze it until then, and claim it again: another worker holds the URL, its crawl is paused, or it is parked
    /// and this is its message, which came early, or no other is known to be there. Do not drop it: it may be all that
    /// is left of the URL if the store loses its data.
    Wait {
        /// When to claim it again.
        until: UnixMs,
    },
    /// Snooze it for a while, and claim it again: the store has no record of the URL, and no room for one.
    StoreFull,
    /// Skip it: its crawl has done all the pages that it may. This worker holds the record.
    Full,
    /// Acknowledge it and forget it: the URL is finished, or parked with a message of its own.
    Drop,
    /// Snooze it for a while, and claim it again: only newer workers can read the format of its record.
    Newer,
    /// Reject it: it names a crawl that the store does not know, and nothing shows that the crawl ever existed.
    Unknown,
}

/// Whether a fetch may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartReply {
    /// Go ahead.
    Go,
    /// It was started too often without an end: it kills its workers.
    Poison,
    /// Its crawl has done all the pages that it may.
    Full,
    /// Its crawl has as many pages under way as it may still do. This one follows if one of them fails.
    Awaited,
    /// Not held by this worker any more, paused with its crawl, or forgotten by the store: its message is
    /// requeued.
    Lost,
}

/// Approximate wait of a URL or a task whose crawl has as many in flight as its limit still allows.
const LIMIT_DELAY: Duration = Duration::from_secs(2);

impl StartReply {
    /// Returns the outcome of a URL or a task that may not start; `None` if it may.
    pub fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Go => None,
            Self::Awaited => {
                let until = UnixMs::now().plus(LIMIT_DELAY.mul_f64(rand::random_range(1.0..2.0)));
                Some(Outcome::Snooze { until })
            }
            Self::Poison => {
                let failure = Failure::new(Class::Crash, "started several times and never finished");
                Some(Outcome::Failed(failure, Reason::Poison))
            }
            Self::Full => Some(Outcome::Skipped(Skip::Limit)),
            Self::Lost => Some(Outcome::Republish),
        }
    }
}

/// The result of admitting a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is new, and has a record now.
    New,
    /// It was seen before.
    Seen,
    /// The crawl has enough URLs of its host.
    LeftOut,
}

/// Maximum number of starts without an end. A record that reaches it is poison.
pub const MAX_STARTS: u32 = 4;

/// Number of starts without an end from which a record is a suspect. Each worker starts one suspect at a time: a
/// death beside other work proves nothing, so poison takes two deaths as the only suspect, as a worker may once be
/// killed for reasons of its own.
pub const SUSPECT_STARTS: u32 = 2;

/// Returns whether a record with this many starts without an end may be what kills its workers.
pub fn is_suspect(starts: u32) -> bool {
    starts >= SUSPECT_STARTS
}

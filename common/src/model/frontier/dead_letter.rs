//! Dead letters: what failed, and why.

use serde::{Deserialize, Serialize};

use crate::frontier::Key;
use crate::frontier::lane::Lane;
use crate::frontier::message::Message;
use crate::frontier::outcome::{Class, Reason};
use crate::names::{CrawlRef, WorkerId};
use crate::text::without_credentials;
use crate::time::UnixMs;

/// A dead letter, for people and other programs. Its text need not be a URL, which may be the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The URL, or the start of the text taken for one; printable, at most 8 KB.
    pub url: String,
    /// The crawl that it belonged to.
    pub crawl: CrawlRef,
    /// The cause.
    pub cause: Cause,
}

impl DeadLetter {
    /// Returns a dead letter for a text that is no URL, or no message. `error` says why, `worker` is the one that
    /// found it, if any. User and password in the text are left out, because many people read dead letters.
    pub fn invalid(text: String, crawl: CrawlRef, error: String, worker: Option<WorkerId>) -> Self {
        let cause = Cause { worker, ..Cause::new(Reason::Invalid, error, UnixMs::now()) };
        Self { url: without_credentials(&text), crawl, cause }
    }

    /// Returns the entry of it that a crawl's list keeps.
    pub fn note(&self) -> DeadLetterEntry {
        DeadLetterEntry::new(self.cause.clone())
    }
}

/// Why a URL came to no good end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// The reason in one word.
    pub reason: Reason,
    /// The kind of the last failure.
    pub class: Option<Class>,
    /// The last HTTP status.
    pub status: Option<u16>,
    /// The last error, printable, at most 1 KB.
    pub error: String,
    /// Number of attempts.
    pub attempts: u32,
    /// The worker that gave up on it.
    pub worker: Option<WorkerId>,
    /// The time of the failure.
    pub failed_at: UnixMs,
}

impl Cause {
    /// Returns the cause of something that was never tried, with neither class, status nor worker.
    pub fn new(reason: Reason, error: impl Into<String>, failed_at: UnixMs) -> Self {
        Self { reason, class: None, status: None, error: error.into(), attempts: 0, worker: None, failed_at }
    }
}

/// An entry of a crawl's list of failed URLs: why the URL failed, and all that is needed to send it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetterEntry {
    /// The cause.
    #[serde(flatten)]
    pub cause: Cause,
    /// The lane that it came through.
    pub lane: Lane,
    /// Number of links between the crawl's start and it.
    pub depth: u16,
    /// The page that linked to it, or the task that yielded it.
    pub referrer: Option<Key>,
}

impl DeadLetterEntry {
    /// Returns the entry of a URL of which only the cause is known.
    pub fn new(cause: Cause) -> Self {
        Self { cause, lane: Lane::default(), depth: 0, referrer: None }
    }

    /// Returns the entry of the URL of `message`.
    pub fn from_message(Message { lane, depth, referrer, .. }: &Message, cause: Cause) -> Self {
        Self { cause, lane: *lane, depth: *depth, referrer: referrer.clone() }
    }
}

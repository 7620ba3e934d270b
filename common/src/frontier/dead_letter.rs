//! Dead letters: what failed, and why.

use serde::{Deserialize, Serialize};

use crate::frontier::Key;
use crate::frontier::lane::Lane;
use crate::frontier::outcome::{Class, Reason};
use crate::names::{CrawlRef, WorkerId};
use crate::text::without_credentials;
use crate::time::UnixMs;

/// A dead letter, for people and other programs. Its text need not be a URL: that may be why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The URL, or the start of what was taken for one; printable, at most 8 KB.
    pub url: String,
    /// The crawl that it belonged to.
    pub crawl: CrawlRef,
    /// Why it is here.
    pub cause: Cause,
}

impl DeadLetter {
    /// For what is no URL, or no message: `error` says why. `worker` found it, if a worker did. User and password in it are left
    /// out: dead letters are read by many.
    pub fn invalid(text: String, crawl: CrawlRef, error: String, worker: Option<WorkerId>) -> Self {
        let cause = Cause { worker, ..Cause::new(Reason::Invalid, error, UnixMs::now()) };
        Self { url: without_credentials(&text), crawl, cause }
    }

    /// What a crawl's list keeps of what is no URL.
    pub fn note(&self) -> Note {
        Note::of(self.cause.clone())
    }
}

/// Why a URL reached no good end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// In one word.
    pub reason: Reason,
    /// The kind of the last failure.
    pub class: Option<Class>,
    /// The last HTTP status.
    pub status: Option<u16>,
    /// The last error, printable, at most 1 KB.
    pub error: String,
    /// How often it was tried.
    pub attempts: u32,
    /// Who gave up on it.
    pub worker: Option<WorkerId>,
    /// When.
    pub failed_at: UnixMs,
}

impl Cause {
    /// Of something that was never tried, with neither class, status nor worker.
    pub fn new(reason: Reason, error: impl Into<String>, failed_at: UnixMs) -> Self {
        Self { reason, class: None, status: None, error: error.into(), attempts: 0, worker: None, failed_at }
    }
}

/// What a crawl's list of failed URLs keeps of one: why it failed, and what it takes to send it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Why.
    #[serde(flatten)]
    pub cause: Cause,
    /// The lane that it came through.
    pub lane: Lane,
    /// How many links it is away from where the crawl started.
    pub depth: u16,
    /// The page that linked to it, or the task that yielded it.
    pub referrer: Option<Key>,
}

impl Note {
    /// Of a URL about which nothing else is known.
    pub fn of(cause: Cause) -> Self {
        Self { cause, lane: Lane::default(), depth: 0, referrer: None }
    }
}

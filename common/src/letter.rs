//! Dead letters: what failed, and why.

use crate::names::{CrawlRef, WorkerId};
use crate::outcome::{Class, Reason};
use crate::time::UnixMs;

/// What is known of a URL that reached no good end. Its text need not be a URL: that may be why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The URL, or the start of what was taken for one; printable, at most 8 KB.
    pub url: String,
    /// The crawl that it belonged to.
    pub crawl: CrawlRef,
    /// Why it is here.
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

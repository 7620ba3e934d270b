//! The inputs of a transition besides the record.

use std::time::Duration;

use super::end::End;
use crate::frontier::crawl::CrawlState;
use crate::frontier::outcome::{Skip, Terminal};
use crate::time::UnixMs;

/// The clock, and the state of the crawl.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The current time.
    pub now: UnixMs,
    /// Time without a sign of life after which something counts as lost.
    pub lost_after: Duration,
    /// The state of the crawl.
    pub status: CrawlState,
    /// The remainder of `max_pages`; `None` if there is no limit.
    pub pages_left: Option<PagesLeft>,
    /// Whether the store had forgotten the crawl, and does not know yet all that is queued.
    pub is_recovering: bool,
    /// Delay of a message that comes while the crawl is paused.
    pub pause_wait: Duration,
}

/// The remainder of a crawl's `max_pages`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagesLeft {
    /// Number of pages that may still be done.
    pub left: u64,
    /// Number of records that [have begun](super::Record::has_begun).
    pub begun: u64,
}

/// The results of a queue's probes. Both are zero if none was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watermark {
    /// When the last probe that came back was sent: everything sent before it has been delivered.
    pub delivered: UnixMs,
    /// When the last probe was sent that came back without the one before it: the queue lost everything sent
    /// before it.
    pub lost_before: UnixMs,
}

impl Context {
    /// Returns the time that a worker may hold a record without extending its lease.
    pub fn possession(&self) -> Duration {
        self.lost_after / 4
    }

    /// Returns whether the crawl has done all the pages that it may.
    pub fn is_full(&self) -> bool {
        self.pages_left.is_some_and(|pages_left| pages_left.left == 0)
    }

    /// Returns the end of every record that is left in the crawl: cancelled with it, or skipped because the limit
    /// is reached. `None` if records go on. Nothing is skipped during a pause, as the operator may be about to
    /// raise the limit.
    pub fn end_of_rest(&self) -> Option<End> {
        match self.status {
            CrawlState::Cancelled => Some(End::new(Terminal::Cancelled, None)),
            CrawlState::Running if self.is_full() => {
                Some(End::new(Terminal::Skipped, Some(Skip::Limit.as_str())))
            }
            CrawlState::Pending | CrawlState::Running | CrawlState::Paused | CrawlState::Finished => None,
        }
    }
}

//! What decides a transition besides the record.

use std::time::Duration;

use super::end::End;
use crate::frontier::crawl::CrawlState;
use crate::frontier::outcome::{Skip, Terminal};
use crate::time::UnixMs;

/// The clock, and where the crawl stands.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// What time it is.
    pub now: UnixMs,
    /// After how long without a sign something counts as lost.
    pub lost_after: Duration,
    /// Where the crawl stands.
    pub status: CrawlState,
    /// What `max_pages` leaves; `None` if any number of pages may be done.
    pub pages_left: Option<PagesLeft>,
    /// Whether the store had forgotten the crawl, and does not yet know all that is queued.
    pub is_recovering: bool,
    /// How long a message is put aside that comes while the crawl is paused.
    pub pause_wait: Duration,
}

/// What the `max_pages` of a crawl leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagesLeft {
    /// How many more pages may be done.
    pub left: u64,
    /// How many records [have begun](super::Record::has_begun).
    pub begun: u64,
}

/// What the probes of a line have shown. Both are zero if none was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watermark {
    /// When the last probe was sent that came back: all that was sent before it has been delivered.
    pub delivered: UnixMs,
    /// When the last probe was sent that came back without the one before it: the queue lost what was sent before it.
    pub lost_before: UnixMs,
}

impl Context {
    /// How long a worker may hold a record without extending its lease.
    pub fn possession(&self) -> Duration {
        self.lost_after / 4
    }

    /// Whether the crawl has done as many pages as it may.
    pub fn is_full(&self) -> bool {
        self.pages_left.is_some_and(|pages_left| pages_left.left == 0)
    }

    /// How every record ends that is left in the crawl: cancelled with it, or skipped because the limit is reached. In a pause
    /// nothing is skipped, for who paused the crawl may be about to raise its limit. `None` if records go on.
    pub fn end_of_rest(&self) -> Option<End> {
        match self.status {
            CrawlState::Cancelled => Some(End::of(Terminal::Cancelled, None)),
            CrawlState::Running if self.is_full() => {
                Some(End::of(Terminal::Skipped, Some(Skip::Limit.as_str())))
            }
            CrawlState::Pending | CrawlState::Running | CrawlState::Paused | CrawlState::Finished => None,
        }
    }
}

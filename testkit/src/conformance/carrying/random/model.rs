//! The state that must hold after each step.

use std::collections::BTreeMap;
use std::time::Duration;

use trawl_common::frontier::crawl::{Counts, CrawlState, CrawlStats};
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{ClaimReply, MAX_STARTS, StartReply};

use super::Who;
use crate::conformance::fixture::started;

/// The state of one page.
#[derive(Default)]
pub(super) struct Page {
    pub(super) ended: Option<Terminal>,
    pub(super) holder: Option<Who>,
    pub(super) is_far: bool,
    pub(super) attempts: u32,
    pub(super) starts: u32,
    pub(super) has_started: bool,
}

/// The state of the crawl.
pub(super) struct Model {
    pub(super) pages: BTreeMap<usize, Page>,
    pub(super) counts: Counts,
    pub(super) status: CrawlState,
    pub(super) is_closed: bool,
    moments: u32,
}

impl Page {
    /// Returns the number of starts without an end after it is parked: the start that led here has ended.
    fn starts_after(&self) -> u32 {
        if self.has_started { 0 } else { self.starts }
    }
}

impl Model {
    pub(super) fn new() -> Self {
        Self {
            pages: BTreeMap::new(),
            counts: Counts::default(),
            status: CrawlState::Running,
            is_closed: false,
            moments: 0,
        }
    }

    /// Panics unless the crawl's stats agree with this state.
    pub(super) fn check(&self, stats: &CrawlStats) {
        assert_eq!((stats.counts, stats.pending), (self.counts, self.left()));
        assert_eq!(stats.status, self.status);
        // Whether a cancelled crawl had read its sources does not matter.
        assert!(stats.discovered == self.is_closed || self.status == CrawlState::Cancelled);
    }

    /// Returns a duration that is longer each time.
    pub(super) fn next_moment(&mut self) -> Duration {
        self.moments += 1;
        Duration::from_millis(1) * self.moments
    }

    pub(super) fn is_paused(&self) -> bool {
        self.status == CrawlState::Paused
    }

    /// Whether a worker could claim the page now.
    pub(super) fn is_available(&self, url: usize) -> bool {
        let is_free = |page: &Page| page.ended.is_none() && page.holder.is_none() && !page.is_far;
        self.status == CrawlState::Running && self.pages.get(&url).is_some_and(is_free)
    }

    fn pending(&mut self, url: usize) -> Option<&mut Page> {
        self.pages.get_mut(&url).filter(|page| page.ended.is_none())
    }

    pub(super) fn held(&mut self, who: Who, url: usize) -> Option<&mut Page> {
        self.pending(url).filter(|page| page.holder == Some(who))
    }

    pub(super) fn admit(&mut self, url: usize) -> bool {
        let is_new = !self.pages.contains_key(&url);
        if is_new {
            self.pages.insert(url, Page::default());
            self.counts.admitted += 1;
        }
        is_new
    }

    /// Returns the reply to a claim, or `None` if another worker or a pause holds the page back: its message waits.
    pub(super) fn claim(&mut self, who: Who, url: usize) -> Option<ClaimReply> {
        if !self.status.is_over() {
            self.admit(url);
        }
        let is_paused = self.is_paused();
        let Some(page) = self.pending(url) else { return Some(ClaimReply::Drop) };
        if page.is_far {
            return Some(ClaimReply::Drop);
        }
        if page.holder.is_some_and(|holder| holder != who) {
            return None;
        }
        if is_paused {
            // The worker that claims it does not hold it.
            page.holder = None;
            return None;
        }
        (page.holder, page.has_started) = (Some(who), false);
        Some(started(page.attempts, page.starts))
    }

    /// Extends a lease. Returns whether the worker holds the page.
    pub(super) fn extend(&mut self, who: Who, url: usize) -> bool {
        if !self.status.is_over() && self.admit(url) {
            self.pages.insert(url, Page { holder: Some(who), ..Page::default() });
        }
        self.held(who, url).is_some()
    }

    pub(super) fn start(&mut self, who: Who, url: usize) -> StartReply {
        let is_paused = self.is_paused();
        let Some(page) = self.held(who, url) else { return StartReply::Lost };
        if is_paused {
            page.holder = None;
            return StartReply::Lost;
        }
        if !page.has_started && page.starts == MAX_STARTS {
            return StartReply::Poison;
        }
        page.starts += u32::from(!page.has_started);
        page.has_started = true;
        StartReply::Go
    }

    pub(super) fn park(&mut self, who: Who, url: usize, long: bool, failed: bool) -> bool {
        let Some(page) = self.held(who, url) else { return false };
        let (attempts, starts) = (page.attempts + u32::from(failed), page.starts_after());
        *page = Page { is_far: long, attempts, starts, ..Page::default() };
        true
    }

    pub(super) fn release(&mut self, who: Who, url: usize) {
        if let Some(page) = self.held(who, url) {
            (page.holder, page.starts) = (None, page.starts_after());
        }
    }

    /// Ends a page. Returns whether it has ended.
    pub(super) fn finish(&mut self, who: Who, url: usize, terminal: Terminal) -> bool {
        let Some(page) = self.held(who, url) else {
            let known = self.pages.get(&url).map(|page| page.ended.is_some());
            return known.unwrap_or(self.status.is_over());
        };
        page.ended = Some(terminal);
        *self.counts.of(terminal) += 1;
        self.settle();
        true
    }

    /// Pauses the crawl. Returns whether it takes the command.
    pub(super) fn pause(&mut self) -> bool {
        let is_going = !self.status.is_over();
        if is_going {
            self.status = CrawlState::Paused;
        }
        is_going
    }

    /// Resumes the crawl. Returns whether it takes the command.
    pub(super) fn resume(&mut self) -> bool {
        let is_going = !self.status.is_over();
        if self.is_paused() {
            self.status = CrawlState::Running;
            self.settle();
        }
        is_going
    }

    /// Cancels the crawl. Returns whether it takes the command.
    pub(super) fn cancel(&mut self) -> bool {
        if self.status == CrawlState::Finished {
            return false;
        }
        self.counts.cancelled += self.left();
        for page in self.pages.values_mut() {
            page.ended.get_or_insert(Terminal::Cancelled);
        }
        self.status = CrawlState::Cancelled;
        true
    }

    /// Replays a page. Returns whether it was in the list.
    pub(super) fn replay(&mut self, url: usize) -> bool {
        let Some(page) = self.pages.get_mut(&url) else { return false };
        let Some(terminal @ (Terminal::Failed | Terminal::Expired)) = page.ended else { return false };
        *page = Page::default();
        *self.counts.of(terminal) -= 1;
        true
    }

    pub(super) fn left(&self) -> u64 {
        self.pages.values().filter(|page| page.ended.is_none()).count() as u64
    }

    pub(super) fn settle(&mut self) {
        if self.status == CrawlState::Running && self.is_closed && self.left() == 0 {
            self.status = CrawlState::Finished;
        }
    }
}

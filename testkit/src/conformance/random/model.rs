//! The state that must hold after each step.

use std::collections::BTreeMap;
use std::time::Duration;

use trawl_common::frontier::crawl::{Counts, CrawlState, CrawlStats};
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{ClaimReply, MAX_STARTS, Start};

use super::step::Who;
use crate::conformance::fixture::started;

/// The state of one page.
#[derive(Default)]
pub(in crate::conformance) struct Page {
    pub(in crate::conformance) ended: Option<Terminal>,
    pub(in crate::conformance) holder: Option<Who>,
    pub(in crate::conformance) is_far: bool,
    /// Whether a worker had it in a pause, and released it: the first sweep after the pause finds it.
    pub(in crate::conformance) is_let_go: bool,
    pub(in crate::conformance) attempts: u32,
    pub(in crate::conformance) starts: u32,
    pub(in crate::conformance) has_started: bool,
}

/// The state of the crawl.
pub(in crate::conformance) struct Model {
    pub(in crate::conformance) pages: BTreeMap<usize, Page>,
    pub(in crate::conformance) counts: Counts,
    pub(in crate::conformance) status: CrawlState,
    pub(in crate::conformance) is_closed: bool,
    moments: u32,
}

impl Page {
    /// Returns the number of starts without an end after it is parked: the start that led here has ended.
    fn starts_after(&self) -> u32 {
        if self.has_started { 0 } else { self.starts }
    }
}

impl Model {
    pub(in crate::conformance) fn new() -> Self {
        Self {
            pages: BTreeMap::new(),
            counts: Counts::default(),
            status: CrawlState::Running,
            is_closed: false,
            moments: 0,
        }
    }

    /// Panics unless the crawl's stats agree with this state.
    pub(in crate::conformance) fn check(&self, stats: &CrawlStats) {
        assert_eq!((stats.counts, stats.pending), (self.counts, self.left()));
        assert_eq!(stats.status, self.status);
        // Whether a cancelled crawl had read its sources does not matter.
        assert!(stats.discovered == self.is_closed || self.status == CrawlState::Cancelled);
    }

    /// Returns a duration that is longer each time.
    pub(in crate::conformance) fn next_moment(&mut self) -> Duration {
        self.moments += 1;
        Duration::from_millis(1) * self.moments
    }

    pub(in crate::conformance) fn is_paused(&self) -> bool {
        self.status == CrawlState::Paused
    }

    /// Whether a worker could claim the page now.
    pub(in crate::conformance) fn is_available(&self, url: usize) -> bool {
        let is_free = |page: &Page| page.ended.is_none() && page.holder.is_none() && !page.is_far;
        self.status == CrawlState::Running && self.pages.get(&url).is_some_and(is_free)
    }

    /// Whether a sweep may find the page without its message, and publish it again.
    pub(in crate::conformance) fn sweep(&mut self, url: usize) -> bool {
        let is_running = self.status == CrawlState::Running;
        self.pending(url).is_some_and(|page| std::mem::take(&mut page.is_let_go) && is_running)
    }

    fn pending(&mut self, url: usize) -> Option<&mut Page> {
        self.pages.get_mut(&url).filter(|page| page.ended.is_none())
    }

    pub(in crate::conformance) fn held(&mut self, who: Who, url: usize) -> Option<&mut Page> {
        self.pending(url).filter(|page| page.holder == Some(who))
    }

    pub(in crate::conformance) fn admit(&mut self, url: usize) -> bool {
        let is_new = !self.pages.contains_key(&url);
        if is_new {
            self.pages.insert(url, Page::default());
            self.counts.admitted += 1;
        }
        is_new
    }

    /// Returns the reply to a claim, or `None` if another worker or a pause holds the page back: its message waits.
    pub(in crate::conformance) fn claim(&mut self, who: Who, url: usize) -> Option<ClaimReply> {
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
            (page.holder, page.is_let_go) = (None, true);
            return None;
        }
        (page.holder, page.has_started, page.is_let_go) = (Some(who), false, false);
        Some(started(page.attempts, page.starts))
    }

    /// Extends a lease. Returns whether the worker holds the page.
    pub(in crate::conformance) fn extend(&mut self, who: Who, url: usize) -> bool {
        if !self.status.is_over() && self.admit(url) {
            self.pages.insert(url, Page { holder: Some(who), ..Page::default() });
        }
        self.held(who, url).is_some()
    }

    pub(in crate::conformance) fn start(&mut self, who: Who, url: usize) -> Start {
        let is_paused = self.is_paused();
        let Some(page) = self.held(who, url) else { return Start::Lost };
        if is_paused {
            (page.holder, page.is_let_go) = (None, true);
            return Start::Lost;
        }
        if !page.has_started && page.starts == MAX_STARTS {
            return Start::Poison;
        }
        page.starts += u32::from(!page.has_started);
        page.has_started = true;
        Start::Go
    }

    pub(in crate::conformance) fn park(&mut self, who: Who, url: usize, long: bool, failed: bool) -> bool {
        let Some(page) = self.held(who, url) else { return false };
        let (attempts, starts) = (page.attempts + u32::from(failed), page.starts_after());
        *page = Page { is_far: long, attempts, starts, ..Page::default() };
        true
    }

    pub(in crate::conformance) fn release(&mut self, who: Who, url: usize) {
        if let Some(page) = self.held(who, url) {
            (page.holder, page.starts) = (None, page.starts_after());
        }
    }

    /// Ends a page. Returns whether it has ended.
    pub(in crate::conformance) fn finish(&mut self, who: Who, url: usize, terminal: Terminal) -> bool {
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
    pub(in crate::conformance) fn pause(&mut self) -> bool {
        let is_going = !self.status.is_over();
        if is_going {
            self.status = CrawlState::Paused;
        }
        is_going
    }

    /// Resumes the crawl. Returns whether it takes the command.
    pub(in crate::conformance) fn resume(&mut self) -> bool {
        let is_going = !self.status.is_over();
        if self.is_paused() {
            self.status = CrawlState::Running;
            self.settle();
        }
        is_going
    }

    /// Cancels the crawl. Returns whether it takes the command.
    pub(in crate::conformance) fn cancel(&mut self) -> bool {
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
    pub(in crate::conformance) fn replay(&mut self, url: usize) -> bool {
        let Some(page) = self.pages.get_mut(&url) else { return false };
        let Some(terminal @ (Terminal::Failed | Terminal::Expired)) = page.ended else { return false };
        *page = Page::default();
        *self.counts.of(terminal) -= 1;
        true
    }

    pub(in crate::conformance) fn left(&self) -> u64 {
        self.pages.values().filter(|page| page.ended.is_none()).count() as u64
    }

    pub(in crate::conformance) fn settle(&mut self) {
        if self.status == CrawlState::Running && self.is_closed && self.left() == 0 {
            self.status = CrawlState::Finished;
        }
    }
}

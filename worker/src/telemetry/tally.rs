//! Counters of this worker, for its own log; a crawl's stats are kept by the engine.

use std::ops::Sub;
use std::sync::atomic::{AtomicU64, Ordering};

use trawl_common::frontier::outcome::Terminal;

/// Counters of one worker since its start.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    done: AtomicU64,
    failed: AtomicU64,
    other: AtomicU64,
    retried: AtomicU64,
    parked: AtomicU64,
}

/// The counters at one moment, or their difference between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Pages fetched and stored.
    pub(crate) done: u64,
    /// URLs that failed for good.
    pub(crate) failed: u64,
    /// URLs with any other final state.
    pub(crate) other: u64,
    /// Attempts that failed and are retried.
    pub(crate) retried: u64,
    /// How often a URL was parked until its host has a slot.
    pub(crate) parked: u64,
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            done: self.done - before.done,
            failed: self.failed - before.failed,
            other: self.other - before.other,
            retried: self.retried - before.retried,
            parked: self.parked - before.parked,
        }
    }
}

impl Tally {
    /// Counts a URL that ended.
    pub(crate) fn count(&self, terminal: Terminal) {
        let counter = match terminal {
            Terminal::Done => &self.done,
            Terminal::Failed => &self.failed,
            Terminal::Skipped | Terminal::Expired | Terminal::Cancelled => &self.other,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a URL that failed and is retried.
    pub(crate) fn retried(&self) {
        self.retried.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a URL that is parked.
    pub(crate) fn parked(&self) {
        self.parked.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the current counters.
    pub(crate) fn counts(&self) -> Counts {
        let now = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Self { done, failed, other, retried, parked } = self;
        Counts {
            done: now(done),
            failed: now(failed),
            other: now(other),
            retried: now(retried),
            parked: now(parked),
        }
    }

    /// The number of URLs that ended, in any state.
    pub(crate) fn ended(&self) -> u64 {
        let Counts { done, failed, other, .. } = self.counts();
        done + failed + other
    }
}

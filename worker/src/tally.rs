//! What this worker has done, for its own log; a crawl's stats are the engine's.

use std::sync::atomic::{AtomicU64, Ordering};

use trawl_common::frontier::outcome::Terminal;

/// Counters of one worker since its start.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    done: AtomicU64,
    failed: AtomicU64,
    other: AtomicU64,
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

    /// Pages fetched and stored.
    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// URLs that ended in any other way.
    pub(crate) fn other(&self) -> u64 {
        self.other.load(Ordering::Relaxed)
    }

    /// URLs that ended, however.
    pub(crate) fn ended(&self) -> u64 {
        self.done() + self.failed() + self.other()
    }

    /// URLs that failed for good.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}

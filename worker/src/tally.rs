//! What this worker has done, for its own log; a crawl's books are the frontier's.

use std::sync::atomic::{AtomicU64, Ordering};

use trawl_common::outcome::Terminal;
use trawl_common::ports::Finish;

/// Counters of one worker since its start.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    done: AtomicU64,
    failed: AtomicU64,
    other: AtomicU64,
    unproven: AtomicU64,
}

impl Tally {
    pub(crate) fn count(&self, finishes: &[Finish], ended: &[bool]) {
        for (finish, _) in finishes.iter().zip(ended).filter(|(_, ended)| **ended) {
            let counter = match finish.terminal {
                Terminal::Done => &self.done,
                Terminal::Failed => &self.failed,
                Terminal::Skipped | Terminal::Expired | Terminal::Cancelled => &self.other,
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a message that says without proof that it is the fleet's. Returns how many there were before.
    pub(crate) fn drops_unproven(&self) -> u64 {
        self.unproven.fetch_add(1, Ordering::Relaxed)
    }

    /// Messages that were dropped, as they said without proof that they are the fleet's.
    pub(crate) fn unproven(&self) -> u64 {
        self.unproven.load(Ordering::Relaxed)
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

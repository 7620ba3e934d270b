//! Operator commands for crawls, their dead letters, and workers.

use async_trait::async_trait;

use super::{ErrorKind, Result, Seen};
use crate::frontier::dead_letter::DeadLetterEntry;
use crate::frontier::{Key, TaskKey, Work};
use crate::names::{CrawlRef, SpiderName, WorkerId};

/// Commands for the whole fleet. Each is idempotent; a command for a crawl outlasts every process.
#[async_trait]
pub trait Control: HoldCrawl {
    /// Pauses a crawl: no fetch begins until [`Control::resume`]. Fails with `Stale` if the crawl is over.
    async fn pause(&self, crawl: &CrawlRef) -> Result<()>;

    /// Resumes a crawl. Deadlines move by the length of the pause. Fails with `Stale` if the crawl is over.
    async fn resume(&self, crawl: &CrawlRef) -> Result<()>;

    /// Cancels a crawl. Returns once each of its URLs has its terminal state. A later crawl may find the cancelled
    /// URLs again. Fails with `Stale` if the crawl is finished.
    async fn cancel(&self, crawl: &CrawlRef) -> Result<()>;

    /// Cancels tasks of a crawl that have no final state, wherever they are; the crawl goes on. A worker that runs
    /// one soon ends its program. The same recipe may be submitted again to an ad-hoc crawl at once, and to other
    /// crawls when this one is over. Returns the number of tasks cancelled.
    async fn cancel_tasks(&self, crawl: &CrawlRef, keys: &[TaskKey]) -> Result<u64>;

    /// Waits until what was ordered for a crawl is on the store's disk and with its replicas, as far as the store can
    /// tell, and for a second at most: only then is it not undone by a store that loses its last second. Pausing,
    /// resuming and cancelling a crawl do so by themselves.
    async fn await_durable(&self, _: &CrawlRef) -> Result<()> {
        Ok(())
    }

    /// Returns a page of the failed and expired URLs and tasks of a crawl, in no particular order. `cursor` is
    /// zero at first, then [`FailedPage::next`]. An entry may come twice, and none that was there all the time is
    /// left out.
    async fn failed(&self, crawl: &CrawlRef, cursor: u64) -> Result<FailedPage>;

    /// Returns the number of entries in a crawl's lists: failed and expired URLs and tasks, and invalid texts. The
    /// call is cheap however many there are.
    async fn count_failed(&self, crawl: &CrawlRef) -> Result<u64>;

    /// Returns why one URL or task failed; `None` if it is not in the list.
    async fn failure(&self, crawl: &CrawlRef, key: &Key) -> Result<Option<DeadLetterEntry>>;

    /// Returns a task or a request of a crawl with its whole payload, if it has not ended or is in the list;
    /// `None` otherwise. A plain URL has no payload beside its key.
    async fn work(&self, crawl: &CrawlRef, key: &Key) -> Result<Option<Work>>;

    /// Like [`Control::work`], for display: returns `None` also for work that cannot be read.
    async fn readable_work(&self, crawl: &CrawlRef, key: &Key) -> Result<Option<Work>> {
        match self.work(crawl, key).await {
            Err(error) if error.kind == ErrorKind::Corrupt => Ok(None),
            work => work,
        }
    }

    /// Returns the texts of each crawl that were not a URL or not a message, and why; up to
    /// [`super::MAX_INVALID`]. They cannot be replayed.
    async fn invalid(&self, crawl: &CrawlRef) -> Result<Vec<(String, DeadLetterEntry)>>;

    /// Removes such texts from the list for good. Returns the number removed.
    async fn purge_invalid(&self, crawl: &CrawlRef, texts: &[String]) -> Result<u64>;

    /// Removes URLs and tasks from the list for good; the crawl's counters stay. Returns the number removed.
    async fn purge(&self, crawl: &CrawlRef, keys: &[Key]) -> Result<u64>;

    /// Makes a spider forget URLs and requests, so that a later crawl takes them in as new. Entries without a
    /// final state are not forgotten. Returns, in order, what the spider knew of each.
    async fn forget_seen(&self, spider: &SpiderName, keys: &[Key]) -> Result<Vec<Seen>>;

    /// Makes a spider forget every URL. Fails with `Refused` while a crawl of the spider is not over, or if its
    /// URLs are stored together with those of other spiders.
    async fn forget_all_seen(&self, spider: &SpiderName) -> Result<()>;

    /// Deletes the stats and the dead letters of a crawl that is over. The URLs that its spider has seen stay, and
    /// so do its items. Fails with `Refused` while the crawl is not over, or not yet cleaned up.
    async fn forget_crawl(&self, crawl: &CrawlRef) -> Result<()>;

    /// Asks a worker to end: it takes no more messages, finishes what it has begun, and gives the rest back. It
    /// learns of this with its next heartbeat. Returns whether the worker is alive.
    async fn drain(&self, worker: &WorkerId) -> Result<bool>;
}

/// The one command that a worker gives.
#[async_trait]
pub trait HoldCrawl: Send + Sync {
    /// Pauses a crawl for a reason, which its stats show until it is resumed: something in it keeps failing, and a
    /// person has to see to that. Fails with `Stale` if the crawl is over.
    async fn hold(&self, crawl: &CrawlRef, why: &str) -> Result<()>;
}

/// A page of failed URLs and tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedPage {
    /// The entries, each with what is known of its failure.
    pub failed: Vec<(Key, DeadLetterEntry)>,
    /// The cursor of the next page; `None` at the end.
    pub next: Option<u64>,
}

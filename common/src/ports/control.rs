//! Control: what people do to crawls, to their dead letters, and to workers.

use async_trait::async_trait;

use super::{ErrorKind, Result, Seen};
use crate::frontier::dead_letter::Note;
use crate::frontier::{Key, TaskKey, Work};
use crate::names::{CrawlRef, SpiderName, WorkerId};

/// Commands, for the whole fleet. Each is idempotent; those to a crawl last beyond every process.
#[async_trait]
pub trait Control: Send + Sync {
    /// Holds a crawl: no fetch begins, until [`Control::resume`]. `Stale` if the crawl is over.
    async fn pause(&self, crawl: &CrawlRef) -> Result<()>;

    /// Lets a crawl go on. Deadlines move by as long as it was held. `Stale` if the crawl is over.
    async fn resume(&self, crawl: &CrawlRef) -> Result<()>;

    /// Ends a crawl: returns when each of its URLs has its terminal state. A later crawl may find again those
    /// that were cancelled. `Stale` if the crawl is finished.
    async fn cancel(&self, crawl: &CrawlRef) -> Result<()>;

    /// Ends tasks of a crawl that have no final state, wherever they are, as cancelled; the crawl goes on. A worker that runs one ends its
    /// program soon. The same recipe may be submitted again to a crawl of what others ask for, and to other crawls when this one is over.
    /// Returns how many there were.
    async fn cancel_tasks(&self, crawl: &CrawlRef, keys: &[TaskKey]) -> Result<u64>;

    /// A page of the URLs and tasks of a crawl that failed or expired, in no order. `cursor` is zero at first and then
    /// what the last page says; a URL may come twice, and none is left out that was there all the time.
    async fn failed(&self, crawl: &CrawlRef, cursor: u64) -> Result<FailedPage>;

    /// How many are in the lists of a crawl: of URLs and tasks that failed or expired, and of what was no URL. It costs little, however
    /// many there are.
    async fn count_failed(&self, crawl: &CrawlRef) -> Result<u64>;

    /// Why one URL or task failed; `None` if it is not in the list.
    async fn failure(&self, crawl: &CrawlRef, key: &Key) -> Result<Option<Note>>;

    /// A task or a request of a crawl, with all that it says, which has not ended or is in the list; `None` if it is neither. The key of a
    /// URL says all by itself.
    async fn work(&self, crawl: &CrawlRef, key: &Key) -> Result<Option<Work>>;

    /// The same for showing it beside what else is known: `None` also where it cannot be read.
    async fn readable_work(&self, crawl: &CrawlRef, key: &Key) -> Result<Option<Work>> {
        match self.work(crawl, key).await {
            Err(error) if error.kind == ErrorKind::Corrupt => Ok(None),
            work => work,
        }
    }

    /// What was no URL, or no message: the text and why, of each crawl up to [`super::MAX_INVALID`]. There is nothing to replay.
    async fn invalid(&self, crawl: &CrawlRef) -> Result<Vec<(String, Note)>>;

    /// Takes such texts out of the list for good. Returns how many were in it.
    async fn purge_invalid(&self, crawl: &CrawlRef, texts: &[String]) -> Result<u64>;

    /// Takes URLs and tasks out of the list for good; the crawl's counters stay. Returns how many were in it.
    async fn purge(&self, crawl: &CrawlRef, keys: &[Key]) -> Result<u64>;

    /// Has a spider forget URLs and requests, so that a later crawl takes them in as new. What has no final state yet is not forgotten. Returns, in
    /// order, how the spider stood to each.
    async fn forget_seen(&self, spider: &SpiderName, keys: &[Key]) -> Result<Vec<Seen>>;

    /// Has a spider forget every URL. `Refused` while a crawl of the spider is not over, or where its URLs are kept together with those
    /// of other spiders.
    async fn forget_all_seen(&self, spider: &SpiderName) -> Result<()>;

    /// Forgets all that is kept of a crawl that is over: its stats and its dead letters. What its spider has seen stays, and so do its
    /// items. `Refused` while it is not over, or not yet cleared up after.
    async fn forget_crawl(&self, crawl: &CrawlRef) -> Result<()>;

    /// Has a worker end: it takes no more, finishes what it has begun, and gives the rest back. It learns so with its next sign of
    /// life. Returns whether it lives.
    async fn drain(&self, worker: &WorkerId) -> Result<bool>;
}

/// A page of failed URLs and tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedPage {
    /// Each with what is known of its failure.
    pub failed: Vec<(Key, Note)>,
    /// Where to go on; `None` at the end.
    pub next: Option<u64>,
}

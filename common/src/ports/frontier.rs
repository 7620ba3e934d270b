//! The frontier: the record of every URL that has no terminal state yet, and each crawl's books.

use std::time::Duration;

use async_trait::async_trait;

use super::Result;
use crate::crawl::Books;
use crate::lane::Lane;
use crate::message::Message;
use crate::names::{CrawlId, CrawlRef, WorkerId};
use crate::outcome::Terminal;
use crate::time::UnixMs;
use crate::url::CanonicalUrl;

/// Keeps one record for each URL that a crawl has admitted and not finished.
///
/// The record is the truth; a message is only a wake-up. Each call is atomic for each URL, and
/// idempotent: a counter changes only where a membership changes, so no order, repetition or
/// concurrency counts twice. Every invariant holds at all times:
/// admitted = records + done + failed + skipped + expired + cancelled.
#[async_trait]
pub trait Frontier: Send + Sync {
    /// Opens `crawl` (or continues it) and takes its spider's discovery lease for `ttl`.
    ///
    /// Fails with `Busy` while another `holder` has the lease, with `Stale` if the crawl is over.
    async fn open(&self, crawl: &CrawlRef, holder: &str, ttl: Duration) -> Result<Discovery>;

    /// Prolongs the lease to `ttl` from now; `Stale` if it has lapsed. A `ttl` of zero gives it back and
    /// leaves discovery open, for another run to continue.
    async fn renew(&self, lease: &Discovery, ttl: Duration) -> Result<()>;

    /// Takes in the URLs that the spider has not seen: marks them seen and writes their records.
    /// Returns, in order, which were new. They are in the outbox until [`Frontier::confirm`].
    ///
    /// Fails with `Stale` when the lease is no longer held or the crawl is over.
    async fn admit(&self, lease: &Discovery, urls: &[NewUrl]) -> Result<Vec<bool>>;

    /// Notes that the messages of these URLs are stored in the queue.
    async fn confirm(&self, crawl: &CrawlRef, urls: &[CanonicalUrl]) -> Result<()>;

    /// Ends discovery and gives the lease back. With no record left the crawl is finished.
    async fn close(&self, lease: Discovery) -> Result<()>;

    /// Asks, on receipt of messages, which of them are this worker's to handle: those become held by
    /// it. A message without a record whose URL was never seen is admitted on the spot, because a
    /// person or another program published it.
    async fn hear(&self, worker: &WorkerId, messages: &[Message]) -> Result<Vec<Heard>>;

    /// Counts a start of each URL, just before it is fetched.
    async fn start(&self, worker: &WorkerId, claims: &[Claim]) -> Result<Vec<Start>>;

    /// Puts URLs that this worker holds aside until an instant. They are in the outbox until confirmed.
    /// Returns, in order, whether the worker still held them.
    async fn park(&self, worker: &WorkerId, parkings: &[Parking]) -> Result<Vec<bool>>;

    /// Gives back URLs that this worker holds and will not handle, as if they had just been queued.
    async fn release(&self, worker: &WorkerId, claims: &[Claim]) -> Result<()>;

    /// Gives URLs their terminal state. Returns, in order, whether this call did it: `false` means that
    /// the URL had one already. Finishing the last URL after discovery has ended finishes the crawl.
    async fn finish(&self, finishes: &[Finish]) -> Result<Vec<bool>>;

    /// The messages of records that have been lost from sight, each now in the outbox as if new:
    /// unconfirmed for a minute, held by a worker whose heartbeat lapsed, or parked and due long ago.
    /// Publish and confirm them. Cheap to call often: one process at a time does the work.
    async fn sweep(&self, worker: &WorkerId) -> Result<Vec<Message>>;

    /// Says that this worker lives, for `ttl`.
    async fn beat(&self, beat: &Heartbeat, ttl: Duration) -> Result<()>;

    /// The books of one crawl; `None` if there is no such crawl.
    async fn books(&self, crawl: &CrawlId) -> Result<Option<Books>>;

    /// The books of every crawl that is known, the newest first.
    async fn crawls(&self) -> Result<Vec<Books>>;
}

/// The right to admit URLs to a crawl, until its lease lapses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// The crawl.
    pub crawl: CrawlRef,
    /// What proves the lease.
    pub token: u64,
}

/// A URL that a source names, on its way into the frontier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUrl {
    /// The URL.
    pub url: CanonicalUrl,
    /// Its lane.
    pub lane: Lane,
    /// When it is no longer worth fetching.
    pub deadline: Option<UnixMs>,
}

impl NewUrl {
    /// The message that wakes a worker for this URL.
    pub fn message(&self, crawl: &CrawlRef) -> Message {
        let seed = Message::seed(self.url.clone(), crawl.clone(), self.lane);
        Message { deadline: self.deadline, ..seed }
    }
}

/// What a worker is to do with a message it received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Handle it: the record is held by this worker now.
    Take {
        /// Failed attempts so far.
        attempts: u32,
    },
    /// Settle it and forget it: finished, in other hands, or parked until later.
    Drop,
}

/// Names the record of one URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The crawl.
    pub crawl: CrawlRef,
    /// The URL.
    pub url: CanonicalUrl,
}

/// Whether a fetch may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Go ahead.
    Go,
    /// It was started too often without an end: it kills its worker.
    Poison,
    /// No longer this worker's.
    Lost,
}

/// How often a URL may be started without an end before it counts as poison.
pub const MAX_STARTS: u32 = 3;

/// A URL to put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parking {
    /// Which URL.
    pub claim: Claim,
    /// When its message comes back ([`super::Queue::wake`]).
    pub until: UnixMs,
    /// Whether it is put aside because it failed: then its attempts go up by one.
    pub failed: bool,
}

/// A URL's terminal state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    /// Which URL.
    pub claim: Claim,
    /// How it ended.
    pub terminal: Terminal,
    /// What the dead-letter list shows of it, for `Failed` and `Expired`.
    pub note: Option<String>,
}

/// A sign of life.
#[derive(Clone, Debug, PartialEq)]
pub struct Heartbeat {
    /// Who.
    pub worker: WorkerId,
    /// Of which version.
    pub version: &'static str,
    /// URLs in its hands.
    pub in_flight: usize,
    /// Pages finished per second since the last beat.
    pub pages_per_second: f64,
}

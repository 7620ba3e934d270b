//! What an engine is to those who use it: it remembers URLs and hands them out.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::{Frontier, NewWork, Result, Terms};
use crate::frontier::Key;
use crate::frontier::dead_letter::DeadLetter;
use crate::frontier::message::{Malformed, Message};
use crate::health::Health;
use crate::names::{CrawlRef, WorkerId};
use crate::settings::Settings;
use crate::spider::SpiderText;

/// Remembers URLs and hands them out: on servers to a fleet, or in one process.
///
/// Keeps one record for each URL that a crawl has admitted and not finished. Every invariant holds at all times:
/// admitted = records + done + failed + skipped + expired + cancelled.
#[async_trait]
pub trait Engine: Send + Sync {
    /// Lets a worker take URLs, as soon as its first claim.
    fn join(&self, worker: Joining) -> Joined;

    /// Opens a crawl, or continues it, and takes its discovery lease. Where a server is away it waits as long as `health` does.
    ///
    /// Fails with `Busy` while someone has a lease for another crawl of the spider, with `Stale` if the crawl is over.
    async fn open(&self, opening: Opening, health: Arc<Health>) -> Result<Box<dyn Session>>;

    /// Takes URLs and tasks out of the list of failed ones of `from` and admits them anew, with no failure counted, into the same crawl or into
    /// another of the same spider. Returns how many there were, when none of them can be lost. `Stale` if `into` is over or was
    /// never opened.
    async fn replay(&self, from: &CrawlRef, into: &CrawlRef, keys: &[Key]) -> Result<u64>;
}

/// Who wants to work.
pub struct Joining {
    /// Its name.
    pub worker: WorkerId,
    /// What it works by.
    pub settings: Settings,
    /// Where the engine says what it waits for.
    pub health: Arc<Health>,
    /// What may be asked for by other programs.
    pub requests: Arc<dyn Requests>,
    /// How many tasks it may hold; none if it runs no programs.
    pub tasks: u16,
    /// Ends the taking of URLs. What is held by then stays held until it is settled or released.
    pub stop: CancellationToken,
}

/// A worker's part in an engine.
pub struct Joined {
    /// Where it claims and settles.
    pub frontier: Arc<dyn Frontier>,
    /// What the engine does meanwhile: it takes what arrives, keeps what the worker holds, and finds what others lost. To be run until the
    /// worker ends; it never ends by itself, but for a panic.
    pub maintenance: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Which requests of other programs a worker takes.
pub trait Requests: Send + Sync {
    /// A request as it is to be worked on, or why it is refused.
    fn check(&self, request: Message) -> std::result::Result<Message, Malformed>;
}

/// Which crawl to open, and how.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The crawl.
    pub crawl: CrawlRef,
    /// What it is bound to: whether it fetches again what was crawled before is settled when it is opened first, its limits each
    /// time.
    pub terms: Terms,
    /// What its spider's file says in this crawl, for all who work on it; `None` where each works by the file that it has. It is
    /// settled when the crawl is opened first.
    pub text: Option<SpiderText>,
    /// Names the sources that are to be read: the same number for all who read the same. `None` for those who read none, and whose end
    /// says nothing of the crawl's sources.
    pub reads: Option<u64>,
    /// Whether its id was made just now, so that nobody can have opened it before.
    pub is_new: bool,
    /// For how long the lease is taken, again and again while the session lives: a process that dies blocks others for no longer.
    pub lease: Duration,
}

/// The result of reading the sources of a crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourcesRead {
    /// Whether some of them could not be read, or not to their end.
    pub incomplete: bool,
    /// URLs that were not admitted because they had been seen.
    pub seen: u64,
    /// Likewise, as their sitemap says that they are as they were.
    pub unchanged: u64,
    /// Likewise, as they were fetched lately.
    pub fresh: u64,
    /// Likewise, as they are outside the domains that the spider takes.
    pub outside: u64,
}

impl SourcesRead {
    /// Returns what it adds to the reasons in the stats: `dropped:seen` 12.
    pub fn reasons(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let Self { seen, unchanged, fresh, outside, .. } = *self;
        let all = [
            ("dropped:seen", seen),
            ("dropped:unchanged", unchanged),
            ("dropped:fresh", fresh),
            ("dropped:outside", outside),
        ];
        all.into_iter().filter(|(_, number)| *number > 0)
    }
}

/// The right to admit URLs to a crawl, held until it is closed or dropped. A lease that lapsed, or that the store forgot, is taken
/// again where that is possible.
#[async_trait]
pub trait Session: Send + Sync {
    /// The crawl.
    fn crawl(&self) -> &CrawlRef;

    /// What the crawl is bound to.
    fn terms(&self) -> Terms;

    /// Takes in the URLs that the spider has not seen. Returns, in order, which were new, when none of these can be lost and all are on
    /// their way to a worker.
    ///
    /// Fails with `Stale` when the crawl is over or another has the lease.
    async fn admit(&self, urls: &[NewWork]) -> Result<Vec<bool>>;

    /// Keeps what is no URL as dead letters, for people to look at, and counts it.
    async fn refuse(&self, dead_letters: &[DeadLetter]) -> Result<()>;

    /// Gives the lease back. With the last lease discovery ends; with no record left then, the crawl is finished.
    async fn close(self: Box<Self>) -> Result<()> {
        self.close_read(None).await
    }

    /// Gives the lease back as [`Session::close`] does. `read` says what came of the sources that were to be read, which counts once however
    /// often they are read.
    async fn close_read(self: Box<Self>, read: Option<SourcesRead>) -> Result<()>;

    /// Gives the lease back and leaves discovery open, for a later run to continue. The crawl is incomplete until one has read the same
    /// sources.
    async fn abandon(self: Box<Self>) -> Result<()>;
}

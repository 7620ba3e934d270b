//! The engine port: stores URLs and hands them out.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::health::Health;
use super::{Fatal, Frontier, NewWork, Result, Terms};
use crate::events::Event;
use crate::frontier::Key;
use crate::frontier::crawl::FAILED_BEFORE;
use crate::frontier::dead_letter::DeadLetter;
use crate::frontier::judging::Judging;
use crate::frontier::message::{Malformed, Message};
use crate::names::{CrawlRef, WorkerId};
use crate::settings::Settings;
use crate::spider::SpiderText;

/// Stores URLs and hands them out: on servers to a fleet, or in one process.
///
/// Keeps one record for each URL that a crawl has admitted and not finished. Every invariant holds at all times:
/// admitted = records + done + failed + skipped + expired + cancelled.
#[async_trait]
pub trait Engine: Join {
    /// Opens a crawl, or continues it, and takes its discovery lease. If a server is unavailable, this waits as long as
    /// `health` allows.
    ///
    /// Fails with `Busy` while another session has a lease for another crawl of the spider, and with `Stale` if the
    /// crawl is over.
    async fn open(&self, opening: Opening, health: Arc<Health>) -> Result<Box<dyn CrawlSession>>;

    /// Removes URLs and tasks from the list of failed ones of `from` and admits them anew, with no failure counted, to
    /// the same crawl or to another of the same spider. Returns their number once none of them can be lost. Fails with
    /// `Stale` if `into` is over or was never opened.
    async fn replay(&self, from: &CrawlRef, into: &CrawlRef, keys: &[Key]) -> Result<u64>;

    /// Publishes an event to its subscribers. A repeated event has the same id. One process has no subscribers.
    async fn announce(&self, _: &Event) -> Result<()> {
        Ok(())
    }
}

/// The part of an engine that a worker uses.
pub trait Join: Send + Sync {
    /// Lets a worker take URLs, as soon as its first claim.
    fn join(&self, worker: Joining) -> Joined;
}

/// A worker that joins.
pub struct Joining {
    /// The name of the worker.
    pub worker: WorkerId,
    /// The settings of the worker.
    pub settings: Settings,
    /// The engine's problems are reported here.
    pub health: Arc<Health>,
    /// Checks the requests of other programs.
    pub requests: Arc<dyn Requests>,
    /// Maximum number of tasks that it may hold; zero if it runs no programs.
    pub tasks: u16,
    /// Stops the claiming of URLs. Those that are held by then stay held until they are settled or released.
    pub stop: CancellationToken,
}

/// A worker's part in an engine.
pub struct Joined {
    /// Claims and settles URLs.
    pub frontier: Arc<dyn Frontier>,
    /// The engine's background work: it receives messages, renews what the worker holds, and finds lost records. It
    /// must be polled until the worker ends; it completes by itself only with an error that ends the worker.
    pub maintenance: Pin<Box<dyn Future<Output = Fatal> + Send>>,
}

/// Decides which requests of other programs a worker takes.
pub trait Requests: Send + Sync {
    /// Returns a request as it is to be processed, or why it is refused.
    fn check(&self, request: Message) -> std::result::Result<Message, Malformed>;
}

/// A crawl to open, and how.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The crawl.
    pub crawl: CrawlRef,
    /// The terms of the crawl: whether it recrawls is determined by the first opening, its limits by each one.
    pub terms: Terms,
    /// The text of the spider's file for all who work on this crawl; `None` if each worker uses the file that it has.
    /// It is determined by the first opening.
    pub text: Option<SpiderText>,
    /// How the crawl's result is judged: the latest opening that says so decides, and `None` leaves it as it is.
    pub judging: Option<Judging>,
    /// Identifies the sources that are to be read: the same number for the same sources. `None` for a session that
    /// reads none, and whose end says nothing about the crawl's sources.
    pub reads: Option<u64>,
    /// Whether the id of the crawl was just created, so that nobody can have opened it before.
    pub is_new: bool,
    /// Duration of the lease, which is renewed while the session lives: a process that dies blocks others for no
    /// longer.
    pub lease: Duration,
}

/// The result of reading the sources of a crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourcesRead {
    /// Whether some of them could not be read completely.
    pub incomplete: bool,
    /// Whether no other session can read them, as they come from standard input.
    pub is_once: bool,
    /// Whether no source was read: work was admitted that none names.
    pub is_submission: bool,
    /// URLs that were not admitted because they had been seen.
    pub seen: u64,
    /// URLs that were not admitted because they had been seen, and failed for good in an earlier crawl.
    pub failed_before: u64,
    /// URLs that were not admitted because their sitemap says that they are unchanged.
    pub unchanged: u64,
    /// URLs that were not admitted because they were fetched recently.
    pub fresh: u64,
    /// URLs that were not admitted because they are outside the spider's domains.
    pub outside: u64,
}

impl SourcesRead {
    /// Returns the result of admitting work that no source names, of which so much had been seen.
    pub fn of_submission(seen: u64) -> Self {
        Self { seen, is_submission: true, ..Self::default() }
    }

    /// Returns the additions to the reasons in the stats, such as `dropped:seen` 12.
    pub fn reasons(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let Self { seen, failed_before, unchanged, fresh, outside, .. } = *self;
        let all = [
            ("dropped:seen", seen),
            (FAILED_BEFORE, failed_before),
            ("dropped:unchanged", unchanged),
            ("dropped:fresh", fresh),
            ("dropped:outside", outside),
        ];
        all.into_iter().filter(|(_, number)| *number > 0)
    }
}

/// The right to admit URLs to a crawl, held until it is closed or dropped. A lease that has lapsed, or that the store
/// has forgotten, is taken again if possible.
#[async_trait]
pub trait CrawlSession: Send + Sync {
    /// The crawl.
    fn crawl(&self) -> &CrawlRef;

    /// The terms of the crawl.
    fn terms(&self) -> Terms;

    /// Admits the URLs that the spider has not seen. Returns, in order, which were new, once none of them can be lost
    /// and all are on their way to a worker.
    ///
    /// Fails with `Stale` if the crawl is over or another session has the lease.
    async fn admit(&self, urls: &[NewWork]) -> Result<Vec<bool>>;

    /// Keeps texts that are not URLs as dead letters, for people to look at, and counts them.
    async fn refuse(&self, dead_letters: &[DeadLetter]) -> Result<()>;

    /// Releases the lease. With the last lease, discovery ends; if no record is left then, the crawl is finished.
    async fn close(self: Box<Self>) -> Result<()> {
        self.close_read(None).await
    }

    /// Releases the lease like [`CrawlSession::close`]. `read` is the result of reading the sources, which counts once
    /// however often they are read.
    async fn close_read(self: Box<Self>, read: Option<SourcesRead>) -> Result<()>;

    /// Releases the lease and leaves discovery open, for a later run to continue. The crawl is incomplete until a run
    /// has read the same sources.
    async fn abandon(self: Box<Self>) -> Result<()>;
}

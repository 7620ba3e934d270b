//! The records: one for each URL and task that has no terminal state yet, and each crawl's stats.

use std::time::Duration;

use async_trait::async_trait;
use trawl_common::events::{CrawlEvent, HostEvent};
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::frontier::{ClaimReply, Key, Start, Taken};
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{BeatReply, Claim, Finish, Heartbeat, NewWork, Result, SourcesRead, Stats, Terms};
use trawl_common::spider::SpiderText;
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;

/// Keeps one record for each URL and each task that a crawl has admitted and not finished; that of a task includes its
/// recipe.
///
/// The record is authoritative; a message is only a wake-up. Each call is atomic for each URL, and idempotent: a
/// counter changes only where a membership changes, so no order, repetition or concurrency counts twice. Every
/// invariant holds at all times:
/// admitted = records + done + failed + skipped + expired + cancelled.
#[async_trait]
pub trait Records: Stats {
    /// Opens a crawl whose id was just created, so that nobody can have opened it before; otherwise like
    /// [`Records::open`].
    async fn begin(&self, crawl: &CrawlRef, terms: Terms, holder: &str, ttl: Duration) -> Result<Lease>;

    /// Opens `crawl` (or continues it) and takes a discovery lease for `ttl`, beside those of others who read sources
    /// for the same crawl. Whether it recrawls is determined by the first opening, its limits by each one. A `holder`
    /// that opens again has one lease, the last. A crawl that was opened before and that the store has forgotten does
    /// not end until all messages that may still be in transit to a worker have arrived.
    ///
    /// Fails with `Busy` while another holder has a lease for another crawl of the spider, and with `Stale` if the
    /// crawl is over.
    async fn open(&self, crawl: &CrawlRef, terms: Terms, holder: &str, ttl: Duration) -> Result<Lease>;

    /// Opens a crawl again whose lease this holder had and lost, because it lapsed or because the store forgot it;
    /// otherwise like [`Records::open`].
    async fn reopen(&self, lost: &Lease, holder: &str, ttl: Duration) -> Result<Lease>;

    /// Extends the lease to `ttl` from now; fails with `Stale` if it has lapsed. A `ttl` of zero releases it, if it is
    /// still held, and leaves discovery open, for another run to continue.
    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<()>;

    /// Admits the URLs that the spider has not seen: marks them seen and writes their records. Returns, in order, which
    /// were new. They are in the outbox until [`Records::confirm`].
    ///
    /// Fails with `Stale` if the lease is no longer held or the crawl is over.
    async fn admit(&self, lease: &Lease, urls: &[NewWork]) -> Result<Vec<bool>>;

    /// Admits the links of pages that this worker holds, like [`Records::admit`], up to the crawl's limit per host.
    /// Returns for each page, in order, the result for its links. If those of some pages do not fit, the call does not
    /// fail.
    async fn admit_links(&self, worker: &WorkerId, pages: &[Linking]) -> Result<Vec<Linked>>;

    /// Admits URLs of any spider that a page or task of another requests, like [`Records::admit`]. The crawl is one of
    /// external publishers ([`CrawlRef::adhoc_of`]), and is created if it is unknown. Returns, in order, which were
    /// new.
    async fn take_in(&self, crawl: &CrawlRef, urls: &[NewWork]) -> Result<Vec<bool>>;

    /// Records that the messages of these URLs are stored in the queue.
    async fn confirm(&self, crawl: &CrawlRef, keys: &[Key]) -> Result<()>;

    /// Releases the lease, with the result of reading the sources under it. With the last lease, discovery ends; if no
    /// record is left then, the crawl is finished.
    async fn close_read(&self, lease: Lease, read: Option<SourcesRead>) -> Result<()>;

    /// Releases a lease under which no sources were to be read.
    async fn close(&self, lease: Lease) -> Result<()> {
        self.close_read(lease, None).await
    }

    /// Claims the URLs of messages that this worker has received. It holds the claimed ones until it has neither
    /// extended nor settled them for a quarter of `lost_after`, with which the records were created.
    ///
    /// A URL that was never seen is admitted on the spot: a person or another program published it, or the store has
    /// forgotten it. A message of a crawl that the store does not know creates that crawl again, if it was sent by one
    /// of trawl's programs.
    async fn claim(&self, worker: &WorkerId, messages: &[Message]) -> Result<Vec<ClaimReply>>;

    /// Extends this worker's leases on URLs that it claimed. A URL that another worker has taken over stays with that
    /// worker; one that the store forgot is admitted again, held by this worker. Returns, in order, which it still
    /// holds.
    async fn extend(&self, worker: &WorkerId, messages: &[Message]) -> Result<Vec<bool>>;

    /// Counts a start of each URL, just before it is fetched; repeated calls while the worker holds it count once. A
    /// URL of a paused crawl is released.
    async fn start(&self, worker: &WorkerId, claims: &[Claim]) -> Result<Vec<Start>>;

    /// Counts the start of a task that this worker holds, like [`Records::start`], unless a more urgent task of the
    /// same spider is waiting ([`Records::list_urgent`]): then nothing is started, and this worker holds that task as
    /// well. A later call may start this one.
    async fn start_task(&self, worker: &WorkerId, task: &Message) -> Result<TaskStart>;

    /// Lists waiting tasks that are more urgent than most: each has a priority above 0. They start before others of
    /// their spider, whichever message arrives first. Only the order depends on this list: if the store has no room, it
    /// is skipped.
    async fn list_urgent(&self, tasks: &[&Message]) -> Result<()>;

    /// Parks URLs that this worker holds until an instant. They are in the outbox until confirmed. A start that led
    /// here has ended; a URL that had not started keeps its count of starts. Returns, in order, whether the worker
    /// still held them; a repeated call before the confirmation returns the same.
    async fn park(&self, worker: &WorkerId, parkings: &[Parking]) -> Result<Vec<bool>>;

    /// Releases URLs that this worker holds and will not handle, as if they had just been queued.
    async fn release(&self, worker: &WorkerId, claims: &[Claim]) -> Result<()>;

    /// Sets the terminal state of URLs that this worker holds. Finishing the last URL after discovery has ended
    /// finishes the crawl.
    ///
    /// Returns, in order, which have ended, by this call or before it. The others are no longer this worker's, or the
    /// store has forgotten them: their messages are requeued.
    async fn finish(&self, worker: &WorkerId, finishes: &[Finish]) -> Result<Vec<bool>>;

    /// Keeps invalid URLs and messages for people to look at ([`trawl_common::ports::Control::invalid`]), and counts
    /// them in their crawl's stats. An unknown crawl is created only for hand-published URLs.
    async fn note_invalid(&self, dead_letters: &[DeadLetter]) -> Result<()>;

    /// Keeps the text of the spider's file for a crawl ([`Stats::spider_text`]). A text that was kept before stays.
    async fn keep_spider_text(&self, crawl: &CrawlRef, text: &SpiderText) -> Result<()>;

    /// Whether the spider of `crawl` has seen a URL: it is pending, or has ended.
    async fn has_seen(&self, crawl: &CrawlRef, url: &CanonicalUrl) -> Result<bool>;

    /// One step of a round through all records, in search of lost ones: unconfirmed for longer than the frontier's
    /// `lost_after`, held by a worker that no longer extends its lease, or not arrived although a probe that was sent
    /// later has. They become new. Also ends crawls that can end. Only one process at a time sweeps; in any other a
    /// step finds nothing.
    async fn sweep(&self, worker: &WorkerId) -> Result<Sweep>;

    /// Records that a probe was sent through every queue at these times. The next probe shows whether this one
    /// returned.
    async fn probe_sent(&self, times: ProbeTimes) -> Result<()>;

    /// Records that probes have returned.
    async fn probes_returned(&self, probes: &[Probe]) -> Result<()>;

    /// Makes a crawl wait for parked URLs ([`Sweep::awaiting`]) for this long, and then for one more probe.
    async fn await_parked(&self, crawl: &CrawlRef, longest: Duration) -> Result<()>;

    /// Records that the dead letters of unreadable records ([`Sweep::corrupt`]) are published.
    async fn dead_letters_published(&self, dead_letters: &[DeadLetter]) -> Result<()>;

    /// Records that a crawl's event ([`Sweep::news`]) has been announced.
    async fn announced(&self, event: &CrawlEvent) -> Result<()>;

    /// Records that a host's event ([`Sweep::hosts`]) has been announced.
    async fn hosts_announced(&self, event: &HostEvent) -> Result<()>;

    /// Publishes for `ttl` that this worker is running, and returns the commands for it. Nothing else depends on it.
    ///
    /// Fails with `Refused`, after doing so, if this machine's clock is far from the frontier's.
    async fn beat(&self, beat: &Heartbeat, ttl: Duration) -> Result<BeatReply>;

    /// Records that this worker ends, and has released everything that it held.
    async fn leave(&self, worker: &WorkerId) -> Result<()>;

    /// Removes URLs from the list of failed ones of `from` and admits them anew, with no failure counted, to the same
    /// crawl or to another of the same spider. Returns their messages, which are in the outbox: publish and confirm
    /// them. Fails with `Stale` if `into` is over or was never opened.
    async fn replay(&self, from: &CrawlRef, into: &CrawlRef, keys: &[Key]) -> Result<Vec<Message>>;
}

/// The right to admit URLs to a crawl, until its lease lapses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The crawl.
    pub crawl: CrawlRef,
    /// The token that proves the lease.
    pub token: u64,
    /// The terms that the crawl was opened with.
    pub terms: Terms,
}

/// The result of asking to start a task.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskStart {
    /// The task, with the decision whether it may start.
    This(Start),
    /// A more urgent task comes first.
    Behind(Box<Urgent>),
}

/// A task that a worker holds because it is more urgent than the one it was about to start. Its own message has not
/// arrived yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Urgent {
    /// The message that has not arrived yet.
    pub message: Message,
    /// Failed attempts so far.
    pub attempts: u32,
    /// The number of starts without an end.
    pub starts: u32,
}

/// A page with its links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linking {
    /// The page.
    pub page: Claim,
    /// The targets of its links, each with the page as its referrer.
    pub links: Vec<NewWork>,
}

/// The result of admitting the links of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Linked<T = Vec<Taken>> {
    /// The links are admitted: the result for each, in order.
    Taken(T),
    /// No link is admitted: the worker no longer holds the page.
    NotHeld,
    /// Not all links are admitted: the store is full. The page has to be submitted again.
    StoreFull,
}

impl<T> Linked<T> {
    /// Converts the admitted links with `f`.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Linked<U> {
        match self {
            Self::Taken(taken) => Linked::Taken(f(taken)),
            Self::NotHeld => Linked::NotHeld,
            Self::StoreFull => Linked::StoreFull,
        }
    }

    /// The result for each link, if the worker held the page and the store was not full.
    pub fn taken(self) -> Option<T> {
        match self {
            Self::Taken(taken) => Some(taken),
            Self::NotHeld | Self::StoreFull => None,
        }
    }
}

/// A URL to park.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parking {
    /// The URL.
    pub claim: Claim,
    /// The time when its message returns ([`super::Broker::wake`]).
    pub until: UnixMs,
    /// Whether it is parked after a failure: then its attempts are incremented.
    pub failed: bool,
}

/// The findings of one step of a sweep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// Messages of lost records, some thousand at most: publish and confirm them.
    pub lost: Vec<Message>,
    /// Send a probe with these times through every queue, then call [`Records::probe_sent`].
    pub probe: Option<ProbeTimes>,
    /// Crawls that wait for everything that may be parked: report the time that takes to each
    /// ([`Records::await_parked`]).
    pub awaiting: Vec<CrawlRef>,
    /// Dead letters of unreadable records: publish them, then call [`Records::dead_letters_published`].
    pub corrupt: Vec<DeadLetter>,
    /// Events of crawls that were not announced yet: publish them, then call [`Records::announced`].
    pub news: Vec<CrawlEvent>,
    /// Events of hosts that were not announced yet: publish them, then call [`Records::hosts_announced`].
    pub hosts: Vec<HostEvent>,
    /// Crawls that do not end by themselves, because the store has evicted data that may have been theirs. Report them
    /// each time.
    pub evicted: Vec<CrawlRef>,
    /// When to take the next step.
    pub rest: Duration,
}

/// A message of the engine's own that goes through a queue behind all others. When it returns, everything that was sent
/// before it has arrived. If the probe before it has not returned by then, the queue has lost its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The queue of the probe.
    pub line: SourceQueue,
    /// The times of the probe.
    pub times: ProbeTimes,
}

/// The time when a probe was sent, and that of the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeTimes {
    /// When it was sent, by the frontier's clock.
    pub sent: UnixMs,
    /// When the one before it was sent; zero for the first.
    pub previous: UnixMs,
}

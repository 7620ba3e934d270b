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

/// Keeps one record for each URL and each task that a crawl has admitted and not finished, and of a task what it says.
///
/// The record is the truth; a message is only a wake-up. Each call is atomic for each URL, and
/// idempotent: a counter changes only where a membership changes, so no order, repetition or
/// concurrency counts twice. Every invariant holds at all times:
/// admitted = records + done + failed + skipped + expired + cancelled.
#[async_trait]
pub trait Records: Stats {
    /// Opens a crawl whose id was made just now, so that nobody can have opened it before; else as [`Records::open`].
    async fn begin(&self, crawl: &CrawlRef, terms: Terms, holder: &str, ttl: Duration) -> Result<Lease>;

    /// Opens `crawl` (or continues it) and takes a discovery lease for `ttl`, beside those of others who read sources for the
    /// same crawl. Whether it fetches again what was crawled before is settled when it is opened first, its limits each time.
    /// A `holder` who opens again has one lease, the last. A crawl that was opened before and that the store does not know
    /// any more does not end before all that may still be under way to a worker has arrived.
    ///
    /// Fails with `Busy` while someone has a lease for another crawl of the spider, with `Stale` if the crawl is over.
    async fn open(&self, crawl: &CrawlRef, terms: Terms, holder: &str, ttl: Duration) -> Result<Lease>;

    /// Opens a crawl again whose lease this holder had and lost, because it lapsed or because the store forgot
    /// it; else as [`Records::open`].
    async fn reopen(&self, lost: &Lease, holder: &str, ttl: Duration) -> Result<Lease>;

    /// Prolongs the lease to `ttl` from now; `Stale` if it has lapsed. A `ttl` of zero gives it back, if it is
    /// still held, and leaves discovery open, for another run to continue.
    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<()>;

    /// Takes in the URLs that the spider has not seen: marks them seen and writes their records.
    /// Returns, in order, which were new. They are in the outbox until [`Records::confirm`].
    ///
    /// Fails with `Stale` when the lease is no longer held or the crawl is over.
    async fn admit(&self, lease: &Lease, urls: &[NewWork]) -> Result<Vec<bool>>;

    /// Takes in what pages link to that this worker holds, as [`Records::admit`] does, up to the crawl's limit for one host.
    /// Returns for each page, in order, what became of its links. If those of some pages do not fit, the call does not fail.
    async fn admit_links(&self, worker: &WorkerId, pages: &[Linking]) -> Result<Vec<Linked>>;

    /// Takes in, of any spider, what a page or task of another asks for, as [`Records::admit`] does. The crawl is one of what others
    /// publish ([`CrawlRef::adhoc_of`]), and begun if it is not known. Returns, in order, which were new.
    async fn take_in(&self, crawl: &CrawlRef, urls: &[NewWork]) -> Result<Vec<bool>>;

    /// Notes that the messages of these URLs are stored in the queue.
    async fn confirm(&self, crawl: &CrawlRef, keys: &[Key]) -> Result<()>;

    /// Gives the lease back, with what came of the sources that were to be read under it. With the last one discovery ends; with no
    /// record left then, the crawl is finished.
    async fn close_read(&self, lease: Lease, read: Option<SourcesRead>) -> Result<()>;

    /// Gives back a lease under which no sources were to be read.
    async fn close(&self, lease: Lease) -> Result<()> {
        self.close_read(lease, None).await
    }

    /// Claims the URLs of messages that this worker has received. It holds those that are its to handle until it has neither
    /// extended nor settled them for a quarter of the `lost_after` that the records were made with.
    ///
    /// A URL that was never seen is admitted on the spot: a person or another program published it, or the store has
    /// forgotten it. A message that names a crawl which the store does not know begins that crawl anew, if a program of
    /// trawl's sent it.
    async fn claim(&self, worker: &WorkerId, messages: &[Message]) -> Result<Vec<ClaimReply>>;

    /// Extends this worker's leases on URLs that it claimed. What another worker took over meanwhile stays the other's; what the
    /// store forgot is admitted again, held by this worker. Returns, in order, which it still holds.
    async fn extend(&self, worker: &WorkerId, messages: &[Message]) -> Result<Vec<bool>>;

    /// Counts a start of each URL, just before it is fetched; asked again while the worker holds it, it counts once.
    /// A URL of a crawl that a person paused is let go.
    async fn start(&self, worker: &WorkerId, claims: &[Claim]) -> Result<Vec<Start>>;

    /// Counts the start of a task that this worker holds, as [`Records::start`] does; unless a task of the same spider waits that is more
    /// urgent ([`Records::list_urgent`]): then nothing is started, and this worker holds that one as well. Asked again, it may be the next.
    async fn start_task(&self, worker: &WorkerId, task: &Message) -> Result<TaskStart>;

    /// Notes that tasks wait in the queue which are more urgent than most: each has a priority above 0. They begin before others of their
    /// spider, whichever message comes first. Only the order depends on it: a store that has no room goes without.
    async fn list_urgent(&self, tasks: &[&Message]) -> Result<()>;

    /// Puts URLs that this worker holds aside until an instant. They are in the outbox until confirmed. A start that led
    /// here has ended; what had not begun keeps the starts that it had.
    /// Returns, in order, whether the worker still held them; asked again before they are confirmed, it is as before.
    async fn park(&self, worker: &WorkerId, parkings: &[Parking]) -> Result<Vec<bool>>;

    /// Gives back URLs that this worker holds and will not handle, as if they had just been queued.
    async fn release(&self, worker: &WorkerId, claims: &[Claim]) -> Result<()>;

    /// Gives URLs that this worker holds their terminal state. Finishing the last URL after discovery has ended
    /// finishes the crawl.
    ///
    /// Returns, in order, which have ended, by this call or before it. The others are no longer this worker's, or the
    /// store has forgotten them: their messages go round once more.
    async fn finish(&self, worker: &WorkerId, finishes: &[Finish]) -> Result<Vec<bool>>;

    /// Notes what was no URL, or no message, for people to look at ([`trawl_common::ports::Control::invalid`]), and counts it in its crawl's
    /// stats. A crawl that is not known is begun only for hand-published URLs.
    async fn note_invalid(&self, dead_letters: &[DeadLetter]) -> Result<()>;

    /// Keeps what the file of a crawl's spider says in this crawl ([`Stats::spider_text`]). What was kept for it before stays.
    async fn keep_spider_text(&self, crawl: &CrawlRef, text: &SpiderText) -> Result<()>;

    /// Whether the spider of `crawl` has seen a URL: it is pending, or has ended.
    async fn has_seen(&self, crawl: &CrawlRef, url: &CanonicalUrl) -> Result<bool>;

    /// One step of a round through all records, in search of those that were lost from sight: unconfirmed for
    /// longer than the frontier's `lost_after`, held by a worker that no longer extends its lease, or not arrived although
    /// a probe that was sent later has. They become new. Ends what can end. One process at a time does it; in
    /// any other a step finds nothing.
    async fn sweep(&self, worker: &WorkerId) -> Result<Sweep>;

    /// Notes that a probe was sent through every queue at these times. The next probe shows whether this one came back.
    async fn probe_sent(&self, times: ProbeTimes) -> Result<()>;

    /// Notes that a probe came back.
    async fn probes_returned(&self, probes: &[Probe]) -> Result<()>;

    /// Lets a crawl wait for what is parked ([`Sweep::awaiting`]) for this long, and then for one more probe.
    async fn await_parked(&self, crawl: &CrawlRef, longest: Duration) -> Result<()>;

    /// Notes that the dead letters of records that could not be read ([`Sweep::corrupt`]) are published.
    async fn dead_letters_published(&self, dead_letters: &[DeadLetter]) -> Result<()>;

    /// Notes that an event ([`Sweep::news`]) has been announced.
    async fn announced(&self, event: &CrawlEvent) -> Result<()>;

    /// Notes that an event ([`Sweep::hosts`]) has been announced.
    async fn hosts_announced(&self, event: &HostEvent) -> Result<()>;

    /// Shows people that this worker lives, for `ttl`, and learns what they want of it. Nothing depends on it.
    ///
    /// Fails with `Refused`, having done so, when this machine's clock is far from the frontier's.
    async fn beat(&self, beat: &Heartbeat, ttl: Duration) -> Result<BeatReply>;

    /// Notes that this worker ends, and has given back what it held.
    async fn leave(&self, worker: &WorkerId) -> Result<()>;

    /// Takes URLs out of the list of failed ones of `from` and admits them anew, with no failure counted, into the same crawl
    /// or into another of the same spider. Returns their messages, which are in the outbox: publish and
    /// confirm them. `Stale` if `into` is over or was never opened.
    async fn replay(&self, from: &CrawlRef, into: &CrawlRef, keys: &[Key]) -> Result<Vec<Message>>;
}

/// The right to admit URLs to a crawl, until its lease lapses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The crawl.
    pub crawl: CrawlRef,
    /// What proves the lease.
    pub token: u64,
    /// What the crawl was opened with.
    pub terms: Terms,
}

/// What comes of asking whether a task may begin.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskStart {
    /// Whether it may.
    This(Start),
    /// One that is more urgent comes first.
    Behind(Box<Urgent>),
}

/// A task that a worker holds because it is more urgent than what it was about to begin. Its own message is still to come.
#[derive(Clone, Debug, PartialEq)]
pub struct Urgent {
    /// The message with which it would have come.
    pub message: Message,
    /// Failed attempts so far.
    pub attempts: u32,
    /// How often it was started without an end.
    pub starts: u32,
}

/// A page that links, and what to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linking {
    /// The page.
    pub page: Claim,
    /// Where its links lead, each with the page as its referrer.
    pub links: Vec<NewWork>,
}

/// What becomes of the links of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Linked<T = Vec<Taken>> {
    /// They are taken in: what became of each, in order.
    Taken(T),
    /// None is: the worker no longer holds the page.
    NotHeld,
    /// Not all are: the store is full. The page is to be asked for again.
    StoreFull,
}

impl<T> Linked<T> {
    /// The same, with something else of what was taken in.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Linked<U> {
        match self {
            Self::Taken(taken) => Linked::Taken(f(taken)),
            Self::NotHeld => Linked::NotHeld,
            Self::StoreFull => Linked::StoreFull,
        }
    }

    /// What became of each link, if the worker held the page and the store was not full.
    pub fn taken(self) -> Option<T> {
        match self {
            Self::Taken(taken) => Some(taken),
            Self::NotHeld | Self::StoreFull => None,
        }
    }
}

/// A URL to put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parking {
    /// Which URL.
    pub claim: Claim,
    /// When its message comes back ([`super::Broker::wake`]).
    pub until: UnixMs,
    /// Whether it is put aside because it failed: then its attempts go up by one.
    pub failed: bool,
}

/// What one step of a sweep found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// Messages of records that were lost from sight, some thousand at most: publish and confirm them.
    pub lost: Vec<Message>,
    /// Send a probe with these times through every queue, then call [`Records::probe_sent`].
    pub probe: Option<ProbeTimes>,
    /// Crawls that wait for everything that may be parked: report to each how long that takes ([`Records::await_parked`]).
    pub awaiting: Vec<CrawlRef>,
    /// Dead letters of records that could not be read: publish them, and say so ([`Records::dead_letters_published`]).
    pub corrupt: Vec<DeadLetter>,
    /// Events of crawls that were not announced yet: publish them, then call [`Records::announced`].
    pub news: Vec<CrawlEvent>,
    /// The same of hosts ([`Records::hosts_announced`]).
    pub hosts: Vec<HostEvent>,
    /// Crawls that do not end by themselves: the store has thrown away what may have been theirs. To be said, as often as they are here.
    pub evicted: Vec<CrawlRef>,
    /// When to take the next step.
    pub rest: Duration,
}

/// A message of the engine's own that goes through a line behind all others. When it comes back, all that was sent before it has
/// arrived. If the probe before it has not come back by then, the queue has lost what it held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The queue that it went through.
    pub line: SourceQueue,
    /// When it was sent.
    pub times: ProbeTimes,
}

/// When a probe was sent, and the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeTimes {
    /// When it was sent, by the frontier's clock.
    pub sent: UnixMs,
    /// When the one before it was sent; zero for the first.
    pub previous: UnixMs,
}

//! The frontier: the record of every URL that has no terminal state yet, and each crawl's books.

use std::num::NonZeroU64;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::Result;
use crate::crawl::{Books, HostBooks};
use crate::lane::Lane;
use crate::letter::{DeadLetter, Note};
use crate::limit::LeftOut;
use crate::line::Line;
use crate::message::Message;
use crate::names::{CrawlId, CrawlRef, WorkerId};
use crate::outcome::Terminal;
use crate::spider::{FileHash, Recrawl, Spider};
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
    /// Opens a crawl whose id was made just now, so that nobody can have opened it before; else as [`Frontier::open`].
    async fn begin(&self, crawl: &CrawlRef, terms: Terms, holder: &str, ttl: Duration) -> Result<Discovery>;

    /// Opens `crawl` (or continues it) and takes a discovery lease for `ttl`, beside those of others who read sources for the
    /// same crawl. Whether it fetches again what was crawled before is settled when it is opened first, its limits each time.
    /// A `holder` who opens again has one lease, the last. A crawl that was opened before and that the store does not know
    /// any more does not end before all that may still be under way to a worker has arrived.
    ///
    /// Fails with `Busy` while someone has a lease for another crawl of the spider, with `Stale` if the crawl is over.
    async fn open(&self, crawl: &CrawlRef, terms: Terms, holder: &str, ttl: Duration) -> Result<Discovery>;

    /// The terms of a crawl; those of no crawl in particular, if it is not known.
    async fn terms(&self, crawl: &CrawlRef) -> Result<Terms>;

    /// Opens a crawl again whose lease this holder had and lost, because it lapsed or because the store forgot
    /// it; else as [`Frontier::open`].
    async fn reopen(&self, lost: &Discovery, holder: &str, ttl: Duration) -> Result<Discovery>;

    /// Prolongs the lease to `ttl` from now; `Stale` if it has lapsed. A `ttl` of zero gives it back, if it is
    /// still held, and leaves discovery open, for another run to continue.
    async fn renew(&self, lease: &Discovery, ttl: Duration) -> Result<()>;

    /// Takes in the URLs that the spider has not seen: marks them seen and writes their records.
    /// Returns, in order, which were new. They are in the outbox until [`Frontier::confirm`].
    ///
    /// Fails with `Stale` when the lease is no longer held or the crawl is over.
    async fn admit(&self, lease: &Discovery, urls: &[NewUrl]) -> Result<Vec<bool>>;

    /// Takes in what pages link to that this worker holds, as [`Frontier::admit`] does, up to the crawl's limit for one host.
    /// Returns for each page, in order, what became of its links. That there is no room for those of some pages fails nothing.
    async fn admit_links(&self, worker: &WorkerId, pages: &[Linking]) -> Result<Vec<Linked>>;

    /// Notes that the messages of these URLs are stored in the queue.
    async fn confirm(&self, crawl: &CrawlRef, urls: &[CanonicalUrl]) -> Result<()>;

    /// Gives the lease back. With the last one discovery ends; with no record left then, the crawl is finished.
    async fn close(&self, lease: Discovery) -> Result<()>;

    /// Asks, on receipt of messages, which of them are this worker's to handle: those become held by it, until
    /// it has neither kept nor settled them for a quarter of the patience that the frontier was made with.
    ///
    /// A message without a record whose URL was never seen is admitted on the spot: a person or another
    /// program published it, or the store has forgotten it. What names a crawl that the store does not know begins that
    /// anew, if a program of trawl's sent it.
    async fn hear(&self, worker: &WorkerId, messages: &[Message]) -> Result<Vec<Heard>>;

    /// Goes on holding what is in this worker's hands. What another took over meanwhile stays theirs; what the
    /// store forgot is admitted again, held by this worker. Returns, in order, which it still holds.
    async fn keep(&self, worker: &WorkerId, messages: &[Message]) -> Result<Vec<bool>>;

    /// Counts a start of each URL, just before it is fetched; asked again while the worker holds it, it counts once.
    /// A URL of a crawl that a person paused is let go.
    async fn start(&self, worker: &WorkerId, claims: &[Claim]) -> Result<Vec<Start>>;

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

    /// Notes what was no URL, or no message, for people to look at ([`super::Control::invalid`]), and counts it in its crawl's
    /// books. A crawl that is not known is begun only for hand-published URLs.
    async fn note_invalid(&self, letters: &[DeadLetter]) -> Result<()>;

    /// Whether the spider of `crawl` has seen a URL: it is pending, or has ended.
    async fn has_seen(&self, crawl: &CrawlRef, url: &CanonicalUrl) -> Result<bool>;

    /// One step of a round through all records, in search of those that were lost from sight: unconfirmed for
    /// longer than the frontier's patience, held by a worker that no longer keeps them, or not arrived although
    /// a probe that was sent later has. They become new. Ends what can end. One process at a time does it; in
    /// any other a step finds nothing.
    async fn sweep(&self, worker: &WorkerId) -> Result<Sweep>;

    /// Notes that a probe of this mark was sent through every line: the next one tells whether it came back.
    async fn probed(&self, mark: Mark) -> Result<()>;

    /// Notes that a probe came back.
    async fn passed(&self, probes: &[Probe]) -> Result<()>;

    /// Lets a crawl wait for what is parked ([`Sweep::awaiting`]) for this long, and then for one more probe.
    async fn await_parked(&self, crawl: &CrawlRef, longest: Duration) -> Result<()>;

    /// Notes that the dead letters of records that could not be read ([`Sweep::corrupt`]) are published.
    async fn buried(&self, letters: &[DeadLetter]) -> Result<()>;

    /// Notes that the end of a crawl has been announced.
    async fn announced(&self, crawl: &CrawlRef) -> Result<()>;

    /// Shows people that this worker lives, for `ttl`. Nothing depends on it.
    ///
    /// Fails with `Refused`, having done so, when this machine's clock is far from the frontier's.
    async fn beat(&self, beat: &Heartbeat, ttl: Duration) -> Result<()>;

    /// The workers that live, as far as they have said so.
    async fn workers(&self) -> Result<Vec<WorkerState>>;

    /// The books of one crawl; `None` if there is no such crawl.
    async fn books(&self, crawl: &CrawlId) -> Result<Option<Books>>;

    /// How many URLs of a crawl have no final state, and what their records take.
    async fn backlog(&self, crawl: &CrawlRef) -> Result<Backlog>;

    /// The books of every crawl that is known, the newest first.
    async fn crawls(&self) -> Result<Vec<Books>>;

    /// The books of a crawl by host, the `most` with the most URLs, those first.
    async fn hosts(&self, crawl: &CrawlRef, most: usize) -> Result<Vec<HostBooks>>;
}

/// What waits in a crawl for its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// URLs without a final state.
    pub urls: u64,
    /// About how many bytes their records take.
    pub bytes: u64,
}

/// The right to admit URLs to a crawl, until its lease lapses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// The crawl.
    pub crawl: CrawlRef,
    /// What proves the lease.
    pub token: u64,
    /// What the crawl was opened with.
    pub terms: Terms,
}

/// What a crawl is bound to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Terms {
    /// Whether it fetches again what was crawled before: then a URL counts as seen only if this crawl has seen it.
    pub recrawl: Recrawl,
    /// How many pages it has done at most; it skips the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pages: Option<NonZeroU64>,
    /// How many URLs of one host it takes at most, of those that pages link to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_per_host: Option<NonZeroU64>,
    /// What its spider's file says, if it has one: a worker without that file must not take its URLs. Where who opens a crawl
    /// is who works on it, it need not be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FileHash>,
}

impl Terms {
    /// The terms of a spider's crawls.
    pub fn of(spider: &Spider) -> Self {
        Self {
            recrawl: spider.recrawl,
            max_pages: spider.max_pages,
            max_per_host: spider.follow.as_ref().and_then(|follow| follow.max_per_host),
            file: spider.file,
        }
    }
}

/// What becomes of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is new, and has a record now.
    New,
    /// It was seen before.
    Seen,
    /// The crawl has enough URLs of its host.
    LeftOut,
}

/// What becomes of the links of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Linked<T = Vec<Taken>> {
    /// They are taken in: what became of each, in order.
    Taken(T),
    /// None is: the worker no longer holds the page.
    NotHeld,
    /// Not all are: the store is full. The page is to be asked for again.
    NoRoom,
}

impl<T> Linked<T> {
    /// The same, with something else of what was taken in.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Linked<U> {
        match self {
            Self::Taken(taken) => Linked::Taken(f(taken)),
            Self::NotHeld => Linked::NotHeld,
            Self::NoRoom => Linked::NoRoom,
        }
    }

    /// What became of each link, if the worker held the page and there was room.
    pub fn taken(self) -> Option<T> {
        match self {
            Self::Taken(taken) => Some(taken),
            Self::NotHeld | Self::NoRoom => None,
        }
    }
}

/// A page that links, and what to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linking {
    /// The page.
    pub page: Claim,
    /// Where its links lead, each with the page as its referrer.
    pub links: Vec<NewUrl>,
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
    /// How many links it is away from where the crawl started.
    pub depth: u16,
    /// The page that linked to it.
    pub referrer: Option<CanonicalUrl>,
}

impl NewUrl {
    /// A URL at the start of a crawl.
    pub fn seed(url: CanonicalUrl, lane: Lane) -> Self {
        Self { url, lane, deadline: None, depth: 0, referrer: None }
    }

    /// The message that wakes a worker for this URL.
    pub fn message(&self, crawl: &CrawlRef) -> Message {
        let seed = Message::seed(self.url.clone(), crawl.clone(), self.lane);
        Message { deadline: self.deadline, depth: self.depth, referrer: self.referrer.clone(), ..seed }
    }
}

/// What a worker is to do with a message it received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Handle it: the record is held by this worker now.
    Take {
        /// Failed attempts so far.
        attempts: u32,
        /// How often a fetch of it has begun that never ended.
        starts: u32,
        /// When it is no longer worth fetching: the record's deadline, moved by the pauses of its crawl.
        deadline: Option<UnixMs>,
    },
    /// Publish it once more, then settle it: the store had forgotten the crawl and has only now learnt of this URL.
    /// So it knows all that is queued as soon as the queue has gone round, long before all is fetched.
    SendAgain,
    /// Put it aside until then, and hear it again: another worker holds the URL, a person holds the crawl, or it is parked
    /// and this is its message, come before its time. Not to be dropped, for it may be all that is left of the URL when the
    /// store loses its data.
    Wait {
        /// When to hear it again.
        until: UnixMs,
    },
    /// Put it aside for a while, and hear it again: the store has no record of the URL, and no room for one.
    NoRoom,
    /// Skip it: its crawl has done as many pages as it may. The record is held by this worker.
    Full,
    /// Settle it and forget it: the URL is finished, or parked and has a message of its own.
    Drop,
    /// Refuse it: it names a crawl that the store does not know, and nothing shows that there ever was one.
    Unknown,
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
    /// Its crawl has done as many pages as it may.
    Full,
    /// Its crawl has as many pages under way as it may still do. If one of them fails, it is this one's turn.
    Awaited,
    /// No longer this worker's, its crawl is paused, or the store has forgotten it: its message goes round again.
    Lost,
}

/// How often a URL may be started without an end before it counts as poison. A worker gives the last start to one URL at a
/// time: else what is in flight beside poison again and again would pass for poison too.
pub const MAX_STARTS: u32 = 3;

/// So many texts that are no URLs a crawl keeps for people to look at: anyone can publish any number.
pub const MAX_INVALID: usize = 1000;

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
    /// The reason in a word, for the books: of a failure its class, of a skipped URL why.
    pub why: Option<&'static str>,
    /// How many bytes its body had.
    pub bytes: u64,
    /// Which required fields its page lacks.
    pub missing: Vec<String>,
    /// How many of its page's links limits left out.
    pub left_out: LeftOut,
    /// What the list of dead letters keeps of it, for `Failed` and `Expired`, and for what was skipped because its host is
    /// blocked.
    pub note: Option<Note>,
    /// Where its redirects led to the page that was stored: that URL counts as seen from now on.
    pub landed: Option<CanonicalUrl>,
}

impl Finish {
    /// A URL that ended as `terminal`, about which there is nothing more to say.
    pub fn new(claim: Claim, terminal: Terminal) -> Self {
        let (missing, left_out) = Default::default();
        Self { claim, terminal, why: None, bytes: 0, missing, left_out, note: None, landed: None }
    }

    /// What its page adds to the reasons in the books: `missing:price` 1, `left_out:depth` 12.
    pub fn reasons(&self) -> impl Iterator<Item = (String, u64)> {
        let missing = self.missing.iter().map(|field| (format!("missing:{field}"), 1));
        let left_out =
            self.left_out.iter().map(|(limit, links)| (format!("left_out:{}", limit.as_str()), links));
        missing.chain(left_out)
    }
}

/// What one step of a sweep found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// Messages of records that were lost from sight, some thousand at most: publish and confirm them.
    pub lost: Vec<Message>,
    /// Send a probe of this mark through every line, and say so ([`Frontier::probed`]).
    pub probe: Option<Mark>,
    /// Crawls that wait for all that may be under way: tell each what is parked ([`Frontier::await_parked`]).
    pub awaiting: Vec<CrawlRef>,
    /// Dead letters of records that could not be read: publish them, and say so ([`Frontier::buried`]).
    pub corrupt: Vec<DeadLetter>,
    /// Crawls whose end nobody has announced: do so, and say so ([`Frontier::announced`]).
    pub ended: Vec<Books>,
    /// When to take the next step.
    pub rest: Duration,
}

/// What goes through a line as messages do. When it comes back, all that was sent before it has arrived. When the one
/// before it has not, the queue has lost what it held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The line that it went through.
    pub line: Line,
    /// What it says.
    pub mark: Mark,
}

/// What a probe says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When it was sent, by the frontier's clock.
    pub sent: UnixMs,
    /// When the one before it was sent; zero for the first.
    pub before: UnixMs,
}

/// What a worker last said of itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkerState {
    /// Who.
    pub worker: WorkerId,
    /// Of which version.
    pub version: String,
    /// URLs in its hands.
    pub in_flight: u64,
    /// Pages finished per second.
    pub pages_per_second: f64,
    /// `ok`, or what keeps it from working: a server, a sink, or what it waits for when no URL has ended for a while.
    pub health: String,
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
    /// What a server keeps it from doing, or what it waits for.
    pub trouble: Option<String>,
}

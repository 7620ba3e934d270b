//! What a worker asks of an engine: URLs to fetch, tasks to run, and a place for what became of them.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::{Claim, Latency, NewWork, Result, Terms, one_each};
use crate::frontier::Start;
use crate::frontier::dead_letter::{Cause, Note};
use crate::frontier::limit::LeftOut;
use crate::frontier::message::Message;
use crate::frontier::outcome::Terminal;
use crate::names::{CrawlRef, SpiderName, WorkerId};
use crate::spider::ItemCounts;
use crate::spider::page_history::Visited;
use crate::time::UnixMs;
use crate::web::url::CanonicalUrl;

/// One worker's part in an engine: it claims URLs, starts them, and settles them.
///
/// What an engine cannot do now, because a server is away, it tries until it can: no call but `start` and `beat` returns before it
/// is done, and [`Health`](crate::health::Health) says meanwhile what it waits for. What is refused for good, or cannot be read, ends
/// the worker: a call that returns no error does not return then, and [`Health::fatal`](crate::health::Health::fatal) has it. A URL that
/// is claimed stays this worker's until it is settled,
/// released, or taken over by another because this worker gave no sign for long.
#[async_trait]
pub trait Frontier: Send + Sync {
    /// Waits for URLs to work on and returns between one and `max`, the urgent ones first. Cancelling the call loses nothing.
    async fn claim(&self, max: usize) -> Vec<Claimed>;

    /// The same of tasks: those with the highest priority first. Between a claim and the start of its task
    /// a more urgent one may come ([`Frontier::start_task`]).
    async fn claim_tasks(&self, max: usize) -> Vec<Claimed>;

    /// Counts a start of each URL, just before it is fetched; asked again while the worker holds it, it counts once. Returns what may
    /// begin, in order. An error is for good.
    async fn start(&self, urls: &[Claim]) -> Result<Vec<Start>>;

    /// Counts the start of a task, just before it is run, as `start` does. `None`: nothing has begun, because a more urgent task of its spider
    /// comes first; [`Frontier::claim_tasks`] hands out both of them, the urgent one first.
    ///
    /// By default as `start`, for engines whose claims take the most urgent of all tasks that wait.
    async fn start_task(&self, task: &Claimed) -> Result<Option<Start>> {
        let starts = self.start(&[Claim::of(&task.message)]).await?;
        Ok(Some(one_each(starts, 1, "starts")?.remove(0)))
    }

    /// Makes sure that what was claimed a while ago is still this worker's, before anything is written that cannot be taken back.
    /// Returns, in order, what is.
    async fn extend(&self, urls: &[&Message]) -> Vec<bool>;

    /// Writes down what became of URLs. When it returns, all of that is durable, in an order in which a crash between two steps
    /// repeats a step and loses nothing.
    async fn settle(&self, batch: Vec<Settlement>) -> Settled;

    /// Takes no more, and gives back all that this worker holds, for any worker to take at once.
    async fn release(&self);

    /// Whether the spider of `crawl` has seen a URL: it is pending, or has ended.
    async fn has_seen(&self, crawl: &CrawlRef, url: &CanonicalUrl) -> bool;

    /// Shows people that the worker lives, and learns what they want of it. Nothing depends on it.
    ///
    /// Fails with `Refused`, having done so, when this machine's clock is far from the engine's.
    async fn beat(&self, beat: &Heartbeat) -> Result<BeatReply>;

    /// What it holds, and what it has turned away.
    fn activity(&self) -> Activity;
}

/// A URL that is this worker's to handle.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// What is known of the URL. It comes back with what became of it ([`Settlement::message`]).
    pub message: Message,
    /// Failed attempts so far.
    pub attempts: u32,
    /// How often a fetch of it has begun that never ended.
    pub starts: u32,
    /// Whether its crawl has done as many pages as it may: then it is skipped.
    pub is_beyond_limit: bool,
    /// Its crawl.
    pub crawl: OpenCrawl,
}

/// What is settled of a crawl when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenCrawl {
    /// What it is bound to.
    pub terms: Terms,
    /// When it started.
    pub started: UnixMs,
}

/// What became of a URL that was claimed.
#[derive(Clone, Debug, PartialEq)]
pub struct Settlement {
    /// The URL, with what is to be known of it when it comes back: where redirects led, which slot it has.
    pub message: Message,
    /// What becomes of it.
    pub verdict: Verdict,
}

/// What becomes of a URL.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It has its terminal state.
    Ends(Box<Ending>),
    /// It comes back then.
    PutAside {
        /// When.
        until: UnixMs,
        /// Whether because it failed: then its attempts go up by one, and it starts afresh.
        failed: bool,
    },
    /// This worker cannot handle it. It comes back about then, for any worker to take at once.
    LeftToOthers {
        /// When.
        until: UnixMs,
    },
    /// It turned out to be no longer this worker's ([`Frontier::extend`]), or its record was forgotten: it goes round once more.
    GoesRound,
    /// It is given back untouched.
    Released,
}

/// How a URL ended, and what its page leaves behind. Its items are stored by now.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// Its terminal state, for its crawl's counters.
    pub finish: Finish,
    /// Why it is a dead letter, if it is one.
    pub dead_letter: Option<Cause>,
    /// What its page links to, or what the program that read it or did the task asks for: of the same spider.
    pub links: Vec<NewWork>,
    /// What that program asks for of other spiders. Each is admitted to the crawl of what others publish for its spider.
    pub elsewhere: Vec<(SpiderName, NewWork)>,
    /// What is to be remembered of its page.
    pub memory: Option<Memory>,
}

impl Ending {
    /// An end that leaves nothing behind.
    pub fn of(finish: Finish) -> Self {
        Self { finish, dead_letter: None, links: Vec::new(), elsewhere: Vec::new(), memory: None }
    }
}

/// What is to be remembered of a page between crawls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// That it was visited.
    Visited(Visited),
    /// Nothing: there is no such page any more.
    Gone,
}

/// What came of settling a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settled {
    /// What has its terminal state now, or had it before. Of the links each has those that the frontier knows now.
    pub ended: Vec<Ending>,
    /// What is not settled, as the store has no room for what it links to or for what is to be remembered: to be settled again.
    pub not_stored: Vec<Settlement>,
}

/// What a worker is doing in an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// How many URLs it holds.
    pub in_flight: usize,
    /// How many messages it dropped because they said without proof that they are the fleet's.
    pub unproven: u64,
}

/// A sign of life.
#[derive(Clone, Debug, PartialEq)]
pub struct Heartbeat {
    /// Who.
    pub worker: WorkerId,
    /// Of which version.
    pub version: &'static str,
    /// URLs that it holds.
    pub in_flight: usize,
    /// Pages finished per second since the last beat.
    pub pages_per_second: f64,
    /// How long requests took that ended since the last beat, if any did.
    pub latency: Option<Latency>,
    /// What a server keeps it from doing, or what it waits for.
    pub trouble: Option<String>,
    /// The spiders that it was lately asked to work for and cannot, and why.
    pub lacks: BTreeMap<SpiderName, String>,
    /// The tasks that its programs are doing, by their keys, and since when; some of them, if there are many.
    pub running: BTreeMap<String, UnixMs>,
}

/// What people want of a worker that lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeatReply {
    /// That it works.
    GoOn,
    /// That it ends ([`Control::drain`](super::Control::drain)).
    Drain,
}

/// A URL's terminal state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    /// Which URL.
    pub claim: Claim,
    /// How it ended.
    pub terminal: Terminal,
    /// The reason in a word, for the stats: of a failure its class, of a skipped URL why.
    pub why: Option<&'static str>,
    /// How many bytes its body had.
    pub bytes: u64,
    /// Which required fields its page lacks.
    pub missing: Vec<String>,
    /// How many items it gave.
    pub items: ItemCounts,
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
        let (missing, items, left_out) = Default::default();
        Self { claim, terminal, why: None, bytes: 0, missing, items, left_out, note: None, landed: None }
    }

    /// What its page adds to the reasons in the stats: `missing:price` 1, `left_out:depth` 12, `items:offer` 3.
    pub fn reasons(&self) -> impl Iterator<Item = (String, u64)> {
        let missing = self.missing.iter().map(|field| (format!("missing:{field}"), 1));
        let left_out =
            self.left_out.iter().map(|(limit, links)| (format!("left_out:{}", limit.as_str()), links));
        missing.chain(left_out).chain(self.items.reasons())
    }
}

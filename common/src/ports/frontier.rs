//! The worker's port of an engine: claims URLs and tasks, and settles them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Browsers, Claim, Fatal, Latency, NewWork, Terms, one_each};
use crate::frontier::StartReply;
use crate::frontier::crawl::HANDED;
use crate::frontier::dead_letter::{Cause, DeadLetterEntry};
use crate::frontier::limit::LeftOut;
use crate::frontier::message::Message;
use crate::frontier::outcome::{Class, Skip, Terminal};
use crate::names::{CrawlRef, SpiderName, WorkerId};
use crate::recorded;
use crate::spider::page_history::Visited;
use crate::spider::{FileHash, ItemCounts};
use crate::time::UnixMs;
use crate::web::url::CanonicalUrl;

/// One worker's part in an engine: it claims URLs, starts them, and settles them.
///
/// Whatever an engine cannot do because a server is unavailable, it retries until it succeeds: no call except `beat`
/// returns before it is done, and [`Health`](super::health::Health) reports the wait. Any other error is [`Fatal`], and
/// the caller has to end the worker. A claimed URL stays this worker's until it is settled, released, or taken over by
/// another worker because this one gave no sign of life for long.
#[async_trait]
pub trait Frontier: Send + Sync {
    /// Waits for URLs and returns between one and `max`, urgent ones first. Cancelling the call loses nothing.
    async fn claim(&self, max: usize) -> Result<Vec<Claimed>, Fatal>;

    /// Like [`claim`](Self::claim), but for tasks, those with the highest priority first. Between a claim and the start
    /// of its task, a more urgent one may arrive ([`Frontier::start_task`]).
    async fn claim_tasks(&self, max: usize) -> Result<Vec<Claimed>, Fatal>;

    /// Counts a start of each URL, just before it is fetched; repeated calls while the worker holds it count once.
    /// Returns, in order, whether each may start.
    async fn start(&self, urls: &[Claim]) -> Result<Vec<StartReply>, Fatal>;

    /// Counts the start of a task, just before it is run, like `start`. Returns `None` if nothing was started because a
    /// more urgent task of its spider comes first; [`Frontier::claim_tasks`] hands out both of them, the urgent one
    /// first.
    ///
    /// The default is `start`, for engines whose claims take the most urgent of all waiting tasks.
    async fn start_task(&self, task: &Claimed) -> Result<Option<StartReply>, Fatal> {
        let starts = self.start(&[Claim::new(&task.message)]).await?;
        Ok(Some(one_each(starts, 1, "starts").map_err(Fatal)?.remove(0)))
    }

    /// Confirms that messages claimed a while ago are still this worker's, before anything is written that cannot be
    /// undone. Returns, in order, whether each is.
    async fn extend(&self, urls: &[&Message]) -> Result<Vec<bool>, Fatal>;

    /// Records the outcomes of URLs. When it returns, everything is durable, written in an order in which a crash
    /// between two steps repeats a step and loses nothing.
    async fn settle(&self, batch: Vec<Settlement>) -> Result<Settled, Fatal>;

    /// Stops claiming, and releases everything that this worker holds, for any worker to take at once.
    async fn release(&self) -> Result<(), Fatal>;

    /// Whether the spider of `crawl` has seen a URL: it is pending, or has ended.
    async fn has_seen(&self, crawl: &CrawlRef, url: &CanonicalUrl) -> Result<bool, Fatal>;

    /// Publishes that the worker is running, and returns the commands for it. Nothing else depends on it.
    ///
    /// Fails with `Refused`, after doing so, if this machine's clock is far from the engine's.
    async fn beat(&self, beat: &Heartbeat) -> super::Result<BeatReply>;

    /// Returns what this worker holds, and what it has rejected.
    fn activity(&self) -> Activity;
}

/// A URL that this worker has to handle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claimed {
    /// The message of the URL. It is returned with the outcome ([`Settlement::message`]).
    pub message: Message,
    /// Failed attempts so far.
    pub attempts: u32,
    /// The number of fetches that started and never ended.
    pub starts: u32,
    /// Whether its crawl has reached its page limit: then it is skipped.
    pub is_beyond_limit: bool,
    /// Its crawl.
    pub crawl: OpenCrawl,
}

/// The settled facts of an open crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCrawl {
    /// The terms of the crawl.
    pub terms: Terms,
    /// When it started.
    pub started: UnixMs,
}

/// The outcome of a claimed URL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settlement {
    /// The URL, with its state for the next claim: its redirects and its slot.
    pub message: Message,
    /// The decision about the URL.
    pub disposition: Disposition,
}

/// The decision about a URL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// It has reached its terminal state.
    Finish(Box<Completion>),
    /// It failed, and is tried again: its attempts are incremented, and it starts afresh.
    Retry {
        /// When.
        until: UnixMs,
    },
    /// It comes back without having failed.
    Snooze {
        /// When.
        until: UnixMs,
    },
    /// This worker cannot handle it. It comes back for any worker to take at once.
    Requeue {
        /// When, approximately.
        until: UnixMs,
    },
    /// It is no longer this worker's ([`Frontier::extend`]), or its record was forgotten: its message is sent again.
    Republish,
    /// It is released untouched, for any worker to take.
    Release,
}

/// The end of a URL, and the results of its page. Its items are already stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// Its terminal state, for its crawl's counters.
    pub finish: Finish,
    /// The reason why it is a dead letter, if it is one.
    pub dead_letter: Option<Cause>,
    /// The links of its page, or the requests of the program that read it or did the task, for the same spider.
    pub links: Vec<NewWork>,
    /// The requests of that program for other spiders. Each is admitted to the crawl of external publishers for its
    /// spider.
    pub elsewhere: Vec<(SpiderName, NewWork)>,
    /// The update of the page history.
    pub memory: Option<PageVisit>,
}

impl Completion {
    /// Creates an end without any results.
    pub fn new(finish: Finish) -> Self {
        Self { finish, dead_letter: None, links: Vec::new(), elsewhere: Vec::new(), memory: None }
    }

    /// Returns it as the end of work that becomes a dead letter for this cause.
    pub fn with_dead_letter(mut self, message: &Message, cause: Cause) -> Self {
        self.finish.why = cause.class.map(Class::as_str);
        self.finish.note = Some(DeadLetterEntry::from_message(message, cause.clone()));
        self.dead_letter = Some(cause);
        self
    }

    /// Counts the requests for other spiders, for its crawl's stats. A repeated call changes nothing.
    pub fn count_handed(&mut self) {
        self.finish.handed.clear();
        for (spider, _) in &self.elsewhere {
            *self.finish.handed.entry(spider.clone()).or_default() += 1;
        }
    }
}

/// An update of the page history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageVisit {
    /// The page was visited.
    Visited(Visited),
    /// The page no longer exists.
    Gone,
}

/// The result of settling a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settled {
    /// The URLs that have a terminal state, from now or before. Each keeps those of its links that the frontier knows
    /// now.
    pub ended: Vec<Completion>,
    /// The URLs that are not settled, because the store has no room for their links or for the page history: settle
    /// them again.
    pub not_stored: Vec<Settlement>,
}

/// The current work of a worker in an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// The number of URLs that it holds.
    pub in_flight: usize,
    /// The number of messages that it dropped because they claimed without proof to be the fleet's.
    pub unproven: u64,
}

/// A heartbeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The worker.
    pub worker: WorkerId,
    /// The version of its program.
    pub version: Cow<'static, str>,
    /// URLs that it holds.
    pub in_flight: usize,
    /// Pages finished per second since the last beat.
    pub pages_per_second: f64,
    /// The duration of requests that ended since the last beat, if there were any.
    pub latency: Option<Latency>,
    /// The server that it waits for, or another reason to wait.
    pub trouble: Option<String>,
    /// The spiders that it could not work for recently, with the reasons.
    pub lacks: BTreeMap<SpiderName, String>,
    /// The spiders with a problem of their own, such as a sink that is away, and the oldest problem of each.
    pub troubles: BTreeMap<SpiderName, String>,
    /// The tasks that its programs are running, by their keys, each with its start; only some of them, if there are
    /// many.
    pub running: BTreeMap<String, UnixMs>,
    /// The versions of the programs of spiders that it uses: a hash of their files and of the spider's file. Only some
    /// of them, if there are many.
    pub programs: BTreeMap<SpiderName, FileHash>,
    /// The spiders that it works for by an older version of their files, with the mistakes of the newer one.
    pub outdated: BTreeMap<SpiderName, String>,
    /// The spiders whose programs are the limit, with the number of pages and tasks that wait for them.
    pub behind: BTreeMap<SpiderName, u64>,
    /// Its browsers; `None` if no page has needed one.
    #[serde(default)]
    pub browsers: Option<Browsers>,
}

impl Heartbeat {
    /// Returns the heartbeat of a worker that has nothing to do.
    pub fn idle(worker: WorkerId) -> Self {
        Self {
            worker,
            version: env!("CARGO_PKG_VERSION").into(),
            in_flight: 0,
            pages_per_second: 0.0,
            latency: None,
            trouble: None,
            lacks: BTreeMap::new(),
            troubles: BTreeMap::new(),
            running: BTreeMap::new(),
            programs: BTreeMap::new(),
            outdated: BTreeMap::new(),
            behind: BTreeMap::new(),
            browsers: None,
        }
    }
}

/// The command for a running worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BeatReply {
    /// Continue.
    GoOn,
    /// End ([`Control::drain`](super::Control::drain)).
    Drain,
}

/// A reason in one word, for the stats.
type Word = &'static str;

/// Reads the reason of an end: the class of a failure, or why something was skipped.
fn known_word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Word>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let classes = Class::ALL.iter().map(|class| class.as_str());
    let mut words = classes.chain(Skip::ALL.iter().map(|skip| skip.as_str()));
    let word = words.find(|word| *word == text);
    word.map(Some).ok_or_else(|| D::Error::custom(format_args!("`{text}` is no reason of an end")))
}

/// The terminal state of a URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finish {
    /// The URL.
    pub claim: Claim,
    /// The terminal state.
    pub terminal: Terminal,
    /// The reason in one word, for the stats: the class of a failure, or why it was skipped.
    #[serde(deserialize_with = "known_word")]
    pub why: Option<Word>,
    /// Size of its body in bytes.
    pub bytes: u64,
    /// The required fields that its page lacks.
    pub missing: Vec<String>,
    /// How many items it gave.
    pub items: ItemCounts,
    /// How many of its page's links limits left out.
    pub left_out: LeftOut,
    /// The number of URLs and tasks that it handed to each other spider ([`Completion::elsewhere`]). Set by the engine.
    pub handed: BTreeMap<SpiderName, u64>,
    /// The entry for the list of dead letters, for `Failed` and `Expired`, and for a URL that was skipped because its
    /// host is blocked.
    pub note: Option<DeadLetterEntry>,
    /// The final URL of its redirects, if its page was stored: that URL counts as seen from now on.
    #[serde(with = "recorded::option")]
    pub landed: Option<CanonicalUrl>,
}

impl Finish {
    /// Creates the end of a URL with nothing but its terminal state.
    pub fn new(claim: Claim, terminal: Terminal) -> Self {
        let (missing, items, left_out, handed) = Default::default();
        Self {
            claim,
            terminal,
            why: None,
            bytes: 0,
            missing,
            items,
            left_out,
            handed,
            note: None,
            landed: None,
        }
    }

    /// Returns its additions to the reasons in the stats: `missing:price` 1, `left_out:depth` 12, `handed:shop` 2,
    /// `items:offer` 3.
    pub fn reasons(&self) -> impl Iterator<Item = (String, u64)> {
        let missing = self.missing.iter().map(|field| (format!("missing:{field}"), 1));
        let left_out =
            self.left_out.iter().map(|(limit, links)| (format!("left_out:{}", limit.as_str()), links));
        let handed = self.handed.iter().map(|(spider, number)| (format!("{HANDED}{spider}"), *number));
        missing.chain(left_out).chain(handed).chain(self.items.reasons())
    }
}

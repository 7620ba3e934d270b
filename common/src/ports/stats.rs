//! Operator view of crawls and workers.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Heartbeat, LaneState, Result, Terms};
use crate::frontier::crawl::{CrawlStats, HostStats};
use crate::frontier::{Key, State, TaskKey, UrlState};
use crate::names::{CrawlId, CrawlRef, SpiderName, WorkerId};
use crate::spider::{FileHash, SpiderText};
use crate::time::UnixMs;

/// Reads the counters of an engine. Nothing here changes anything.
#[async_trait]
pub trait Stats: SpiderTexts {
    /// Returns the stats of one crawl; `None` if there is no such crawl.
    async fn crawl_stats(&self, crawl: &CrawlId) -> Result<Option<CrawlStats>>;

    /// Returns the stats of every known crawl, the newest first.
    async fn crawls(&self) -> Result<Vec<CrawlStats>>;

    /// Returns the stats of a spider's crawls that are not over, the newest first. The cost does not grow with the
    /// number of crawls that are.
    async fn open_crawls(&self, spider: &SpiderName) -> Result<Vec<CrawlStats>> {
        let is_open = |stats: &CrawlStats| stats.spider == *spider && !stats.status.is_over();
        Ok(self.crawls().await?.into_iter().filter(is_open).collect())
    }

    /// Returns the stats of a crawl by host: the `most` hosts with the most URLs, in that order.
    async fn hosts(&self, crawl: &CrawlRef, most: usize) -> Result<Vec<HostStats>>;

    /// Returns the number of URLs of a crawl without a final state, and the size of their records.
    async fn backlog(&self, crawl: &CrawlRef) -> Result<Backlog>;

    /// Returns the terms of a crawl; the default terms if it is not known.
    async fn terms(&self, crawl: &CrawlRef) -> Result<Terms>;

    /// Returns what a crawl knows of a URL or a task; [`UrlState::Unseen`] if it is not known. Fails with
    /// `Corrupt` if its record cannot be read.
    async fn url_state(&self, crawl: &CrawlRef, key: &Key) -> Result<UrlState>;

    /// Returns whether a crawl may have tasks, pending or failed; if not, its records need not be searched for
    /// them. The call is cheap.
    async fn may_have_tasks(&self, _: &CrawlRef) -> Result<bool> {
        Ok(true)
    }

    /// Returns a part of the tasks of a crawl that have no final state, in no particular order. `cursor` is zero
    /// at first, then [`TaskPage::next`]. A task may come twice, and none that is there all the time is left out,
    /// except where its record cannot be read.
    async fn tasks(&self, crawl: &CrawlRef, cursor: u64) -> Result<TaskPage>;

    /// Returns the live workers, by their heartbeats.
    async fn workers(&self) -> Result<Vec<WorkerState>>;

    /// Returns the workers whose last heartbeat is less than a day old, that have stopped sending them, and that
    /// have not signed off.
    async fn vanished(&self) -> Result<Vec<Vanished>>;

    /// Returns where the URLs of a crawl without a final state are; a sample of some thousand, if there are more.
    async fn places(&self, crawl: &CrawlRef) -> Result<Places>;

    /// Returns the number of URLs that a spider has seen; `None` if they are stored together with those of other
    /// spiders.
    async fn seen(&self, spider: &SpiderName) -> Result<Option<u64>>;

    /// Returns a part of the URLs that a spider has seen, if they are stored as URLs and not as fingerprints; in
    /// no particular order. `cursor` is zero at first, then [`SeenUrls::next`].
    async fn walk_seen(&self, spider: &SpiderName, cursor: u64) -> Result<SeenUrls>;

    /// Returns, in order, what a spider knows of each of these URLs and requests.
    async fn seen_urls(&self, spider: &SpiderName, keys: &[Key]) -> Result<Vec<Seen>>;

    /// Returns the state of each lane, in the order of [`LaneName::ALL`](super::LaneName::ALL). Lanes that the
    /// engine does not have are left out.
    async fn lanes(&self) -> Result<Vec<LaneState>>;
}

/// The files of spiders that crawls keep.
#[async_trait]
pub trait SpiderTexts: Send + Sync {
    /// Returns the text of the spider's file that a crawl was [opened](super::Opening) with, if any.
    async fn spider_text(&self, crawl: &CrawlRef) -> Result<Option<SpiderText>>;
}

/// The unfinished work of a crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// URLs without a final state.
    pub urls: u64,
    /// Approximate size of their records, in bytes.
    pub bytes: u64,
}

/// The last heartbeat of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerState {
    /// The worker.
    pub worker: WorkerId,
    /// Its version of trawl.
    pub version: String,
    /// Whether it was asked to end ([`Control::drain`](super::Control::drain)).
    pub draining: bool,
    /// Number of URLs that it holds.
    pub in_flight: u64,
    /// Pages finished per second.
    pub pages_per_second: f64,
    /// The duration of its recent requests; `None` if it has made none.
    pub latency: Option<Latency>,
    /// `ok`, or the reason why it does not work: a server, a sink, or what it waits for when no URL has ended for
    /// a while.
    pub health: String,
    /// The spiders that it was lately asked to work for and cannot, and why.
    pub lacks: BTreeMap<SpiderName, String>,
    /// The spiders with a problem of their own, such as a sink that is away, and the oldest problem of each. `health`
    /// names only one problem.
    #[serde(skip)]
    pub troubles: BTreeMap<SpiderName, String>,
    /// The tasks that its programs were doing then, by key, each with its start; only some of them if there are
    /// many.
    #[serde(skip)]
    pub running: BTreeMap<String, UnixMs>,
    /// The versions of the programs that it uses, by spider. Where workers differ, they do the same work differently.
    pub programs: BTreeMap<SpiderName, FileHash>,
    /// The spiders that it works for by an older version of their files, as the newer one cannot be used, and why.
    #[serde(default)]
    pub outdated: BTreeMap<SpiderName, String>,
    /// The spiders whose programs are the limit, with the number of pages and tasks that wait for them.
    #[serde(skip)]
    pub behind: BTreeMap<SpiderName, u64>,
    /// Its browsers; `None` if no page has needed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub browsers: Option<Browsers>,
}

/// The duration of requests to hosts, bodies included, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// The median.
    pub p50_ms: u64,
    /// The 95th percentile.
    pub p95_ms: u64,
}

/// The browsers of a worker, and the pages that they render.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Browsers {
    /// Number of browsers that run.
    pub running: u64,
    /// Number of pages that they have open.
    pub pages: u64,
    /// Number of pages that wait for a place in one.
    pub waiting: u64,
    /// Memory of the browsers in bytes, in which what processes share counts once.
    pub memory: u64,
    /// Processor time that browsers have taken since the worker's start, in seconds.
    pub cpu_seconds: u64,
    /// Number of pages rendered since the worker's start.
    pub rendered: u64,
    /// Number of browsers that have died since then.
    pub died: u64,
}

impl WorkerState {
    /// The health of a worker that nothing keeps from its work.
    pub const WELL: &str = "ok";

    /// Returns the state of a worker that has nothing to do.
    pub fn idle(worker: WorkerId) -> Self {
        Self::from(Heartbeat::idle(worker))
    }

    /// Returns whether nothing keeps it from its work.
    pub fn is_well(&self) -> bool {
        self.health == Self::WELL
    }
}

impl From<Heartbeat> for WorkerState {
    fn from(beat: Heartbeat) -> Self {
        Self {
            worker: beat.worker,
            version: beat.version.into_owned(),
            draining: false,
            in_flight: beat.in_flight as u64,
            pages_per_second: beat.pages_per_second,
            latency: beat.latency,
            health: beat.trouble.unwrap_or_else(|| Self::WELL.to_owned()),
            lacks: beat.lacks,
            troubles: beat.troubles,
            running: beat.running,
            programs: beat.programs,
            outdated: beat.outdated,
            behind: beat.behind,
            browsers: beat.browsers,
        }
    }
}

/// A worker that is gone without having signed off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Vanished {
    /// The worker.
    pub worker: WorkerId,
    /// The time of its last heartbeat.
    pub seen: UnixMs,
    /// Number of URLs that it held then. Others take them over when its leases lapse.
    pub in_flight: u64,
}

/// The URLs of a crawl without a final state, counted by place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Number of URLs that wait for a worker.
    pub queued: u64,
    /// Number of URLs that are parked until a later instant.
    pub parked: u64,
    /// Number of these that have failed and are retried then.
    pub retried: u64,
    /// The earliest of these instants.
    pub next: Option<UnixMs>,
    /// Number of URLs that each worker holds.
    pub held: BTreeMap<WorkerId, u64>,
    /// Whether all URLs were counted, not a sample.
    pub is_all: bool,
}

/// A part of the tasks of a crawl that have no final state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskPage {
    /// The tasks. A part may be empty without being the last.
    pub tasks: Vec<PendingTask>,
    /// The cursor of the next part; `None` at the end.
    pub next: Option<u64>,
}

/// A task that has no final state.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingTask {
    /// The key of the task.
    pub key: TaskKey,
    /// Its state.
    pub state: State,
    /// Number of failed attempts.
    pub attempts: u32,
}

/// The state of a URL in a spider's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Seen {
    /// Not seen, or forgotten.
    Never,
    /// Seen: no later crawl takes it in again.
    Ended,
    /// Pending in a crawl, so it cannot be forgotten: that crawl would take it in once more.
    Pending,
}

/// A part of the URLs that a spider has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenUrls {
    /// The URLs and requests. A part may be empty without being the last.
    pub urls: Vec<Key>,
    /// The cursor of the next part; `None` at the end.
    pub next: Option<u64>,
}

//! What people see of crawls and workers.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::Serialize;

use super::{LaneState, Result, Terms};
use crate::frontier::crawl::{CrawlStats, HostStats};
use crate::frontier::{Key, State, TaskKey, UrlState};
use crate::names::{CrawlId, CrawlRef, SpiderName, WorkerId};
use crate::spider::SpiderText;
use crate::time::UnixMs;

/// Reads what an engine counts. Nothing here changes anything.
#[async_trait]
pub trait Stats: Send + Sync {
    /// The stats of one crawl; `None` if there is no such crawl.
    async fn crawl_stats(&self, crawl: &CrawlId) -> Result<Option<CrawlStats>>;

    /// The stats of every crawl that is known, the newest first.
    async fn crawls(&self) -> Result<Vec<CrawlStats>>;

    /// The stats of a spider's crawls that are not over, the newest first. Its cost does not grow with those that are.
    async fn open_crawls(&self, spider: &SpiderName) -> Result<Vec<CrawlStats>> {
        let is_open = |stats: &CrawlStats| stats.spider == *spider && !stats.status.is_over();
        Ok(self.crawls().await?.into_iter().filter(is_open).collect())
    }

    /// The stats of a crawl by host, the `most` with the most URLs, those first.
    async fn hosts(&self, crawl: &CrawlRef, most: usize) -> Result<Vec<HostStats>>;

    /// How many URLs of a crawl have no final state, and what their records take.
    async fn backlog(&self, crawl: &CrawlRef) -> Result<Backlog>;

    /// The terms of a crawl; those of no crawl in particular, if it is not known.
    async fn terms(&self, crawl: &CrawlRef) -> Result<Terms>;

    /// What the file of a crawl's spider says in it, if it was [opened](super::Opening) with a text.
    async fn spider_text(&self, crawl: &CrawlRef) -> Result<Option<SpiderText>>;

    /// What a crawl knows of a URL or a task; of one that is not known, [`UrlState::Unseen`]. `Corrupt` if its record cannot be read.
    async fn url_state(&self, crawl: &CrawlRef, key: &Key) -> Result<UrlState>;

    /// Whether a crawl may have tasks, pending or failed; if not, nobody needs to go through its records for them. It costs little.
    async fn may_have_tasks(&self, _: &CrawlRef) -> Result<bool> {
        Ok(true)
    }

    /// A part of the tasks of a crawl that have no final state, in no order. `cursor` is zero at first and then what the last part says;
    /// a task may come twice, and none is left out that is there all the time. One whose record cannot be read is left out.
    async fn tasks(&self, crawl: &CrawlRef, cursor: u64) -> Result<TaskPage>;

    /// The workers that live, as far as they have said so.
    async fn workers(&self) -> Result<Vec<WorkerState>>;

    /// The workers that said within the last day that they live, say nothing any more, and have not said that they end.
    async fn vanished(&self) -> Result<Vec<Vanished>>;

    /// Where those URLs of a crawl are that have no final state; of some thousand, if there are more.
    async fn places(&self, crawl: &CrawlRef) -> Result<Places>;

    /// How many URLs a spider has seen; `None` where they are kept together with those of other spiders.
    async fn seen(&self, spider: &SpiderName) -> Result<Option<u64>>;

    /// A part of what a spider has seen, as far as it is kept as URLs and not as fingerprints of them; in no order. `cursor` is zero at first
    /// and then what the last part says.
    async fn walk_seen(&self, spider: &SpiderName, cursor: u64) -> Result<SeenUrls>;

    /// How a spider stands to each of these URLs and requests, in order.
    async fn seen_urls(&self, spider: &SpiderName, keys: &[Key]) -> Result<Vec<Seen>>;

    /// What waits in each lane, in the order of [`LaneName::ALL`](super::LaneName::ALL). A lane that the engine does not have is left out.
    async fn lanes(&self) -> Result<Vec<LaneState>>;
}

/// What waits in a crawl for its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// URLs without a final state.
    pub urls: u64,
    /// About how many bytes their records take.
    pub bytes: u64,
}

/// What a worker last said of itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkerState {
    /// Who.
    pub worker: WorkerId,
    /// Of which version.
    pub version: String,
    /// Whether it was asked to end ([`Control::drain`](super::Control::drain)).
    pub draining: bool,
    /// URLs in its hands.
    pub in_flight: u64,
    /// Pages finished per second.
    pub pages_per_second: f64,
    /// How long its requests took lately; `None` if it has made none.
    pub latency: Option<Latency>,
    /// `ok`, or what keeps it from working: a server, a sink, or what it waits for when no URL has ended for a while.
    pub health: String,
    /// The spiders that it was lately asked to work for and cannot, and why.
    pub lacks: BTreeMap<SpiderName, String>,
    /// The tasks that its programs were doing then, by their keys, and since when; some of them, if there are many.
    #[serde(skip)]
    pub running: BTreeMap<String, UnixMs>,
}

/// How long requests to hosts took, bodies included, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Half of them took no longer.
    pub p50_ms: u64,
    /// Nineteen of twenty took no longer.
    pub p95_ms: u64,
}

impl WorkerState {
    /// What the health of a worker says that nothing keeps from its work.
    pub const WELL: &str = "ok";

    /// Whether nothing keeps it from its work.
    pub fn is_well(&self) -> bool {
        self.health == Self::WELL
    }
}

/// A worker that lives no more and has not said why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Vanished {
    /// Which.
    pub worker: WorkerId,
    /// When it last said that it lives.
    pub seen: UnixMs,
    /// How many URLs it held then. Others take them over when its leases lapse.
    pub in_flight: u64,
}

/// Where URLs of a crawl are that have no final state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// URLs that wait for a worker.
    pub queued: u64,
    /// URLs that are put aside until a later instant.
    pub parked: u64,
    /// The first of these instants.
    pub next: Option<UnixMs>,
    /// How many URLs each worker holds.
    pub held: BTreeMap<WorkerId, u64>,
    /// Whether these are all.
    pub is_all: bool,
}

/// A part of the tasks of a crawl that have no final state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskPage {
    /// The tasks; a part may have none and not be the last.
    pub tasks: Vec<PendingTask>,
    /// Where to go on; `None` at the end.
    pub next: Option<u64>,
}

/// A task that has no final state.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingTask {
    /// Which.
    pub key: TaskKey,
    /// Where it is.
    pub state: State,
    /// How often it has failed.
    pub attempts: u32,
}

/// How a spider stands to a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Seen {
    /// It has not seen it, or has forgotten it.
    Never,
    /// It has seen it: no later crawl takes it in again.
    Ended,
    /// The URL has no final state in a crawl yet, so it cannot be forgotten: that crawl would take it in once more.
    Pending,
}

/// A part of what a spider has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenUrls {
    /// The URLs and requests; a part may have none and not be the last.
    pub urls: Vec<Key>,
    /// Where to go on; `None` at the end.
    pub next: Option<u64>,
}

//! What people see of crawls and workers.

use async_trait::async_trait;
use serde::Serialize;

use super::{Result, Terms};
use crate::frontier::crawl::{CrawlStats, HostStats};
use crate::frontier::{Key, UrlState};
use crate::names::{CrawlId, CrawlRef, WorkerId};
use crate::spider::SpiderText;

/// Reads what an engine counts. Nothing here changes anything.
#[async_trait]
pub trait Stats: Send + Sync {
    /// The stats of one crawl; `None` if there is no such crawl.
    async fn crawl_stats(&self, crawl: &CrawlId) -> Result<Option<CrawlStats>>;

    /// The stats of every crawl that is known, the newest first.
    async fn crawls(&self) -> Result<Vec<CrawlStats>>;

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

    /// The workers that live, as far as they have said so.
    async fn workers(&self) -> Result<Vec<WorkerState>>;
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
    /// `ok`, or what keeps it from working: a server, a sink, or what it waits for when no URL has ended for a while.
    pub health: String,
}

impl WorkerState {
    /// What the health of a worker says that nothing keeps from its work.
    pub const WELL: &str = "ok";

    /// Whether nothing keeps it from its work.
    pub fn is_well(&self) -> bool {
        self.health == Self::WELL
    }
}

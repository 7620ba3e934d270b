//! The stats, which workers do not read.

use async_trait::async_trait;
use trawl_common::frontier::crawl::{CrawlStats, HostStats};
use trawl_common::frontier::{Key, UrlState};
use trawl_common::names::{CrawlId, CrawlRef, SpiderName};
use trawl_common::ports::{
    Backlog, LaneState, Places, Result, Seen, SeenUrls, Stats, TaskPage, Terms, Vanished, WorkerState,
};
use trawl_common::spider::SpiderText;

use super::Memory;

#[async_trait]
impl Stats for Memory {
    async fn crawl_stats(&self, _: &CrawlId) -> Result<Option<CrawlStats>> {
        unreachable!("a worker has no stats to see")
    }

    async fn crawls(&self) -> Result<Vec<CrawlStats>> {
        unreachable!("a worker has no stats to see")
    }

    async fn hosts(&self, _: &CrawlRef, _: usize) -> Result<Vec<HostStats>> {
        unreachable!("a worker has no stats to see")
    }

    async fn backlog(&self, _: &CrawlRef) -> Result<Backlog> {
        unreachable!("a worker has no stats to see")
    }

    async fn terms(&self, _: &CrawlRef) -> Result<Terms> {
        unreachable!("a worker has no stats to see")
    }

    async fn spider_text(&self, _: &CrawlRef) -> Result<Option<SpiderText>> {
        unreachable!("no crawl was opened with a file")
    }

    async fn url_state(&self, _: &CrawlRef, _: &Key) -> Result<UrlState> {
        unreachable!("a worker has no stats to see")
    }

    async fn tasks(&self, _: &CrawlRef, _: u64) -> Result<TaskPage> {
        unreachable!("a worker has no stats to see")
    }

    async fn workers(&self) -> Result<Vec<WorkerState>> {
        unreachable!("a worker has no stats to see")
    }

    async fn vanished(&self) -> Result<Vec<Vanished>> {
        unreachable!("a worker has no stats to see")
    }

    async fn places(&self, _: &CrawlRef) -> Result<Places> {
        unreachable!("a worker has no stats to see")
    }

    async fn seen(&self, _: &SpiderName) -> Result<Option<u64>> {
        unreachable!("a worker has no stats to see")
    }

    async fn walk_seen(&self, _: &SpiderName, _: u64) -> Result<SeenUrls> {
        unreachable!("a worker has no stats to see")
    }

    async fn seen_urls(&self, _: &SpiderName, _: &[Key]) -> Result<Vec<Seen>> {
        unreachable!("a worker has no stats to see")
    }

    async fn lanes(&self) -> Result<Vec<LaneState>> {
        unreachable!("a worker has no stats to see")
    }
}

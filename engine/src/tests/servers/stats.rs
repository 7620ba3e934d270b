//! Stats. Workers read only the terms of crawls.

use async_trait::async_trait;
use trawl_common::frontier::crawl::{CrawlStats, HostStats};
use trawl_common::frontier::{Key, UrlState};
use trawl_common::names::{CrawlId, CrawlRef, SpiderName};
use trawl_common::ports::{
    Backlog, Error, ErrorKind, LaneState, Places, Result, Seen, SeenUrls, SpiderTexts, Stats, TaskPage,
    Terms, Vanished, WorkerState,
};
use trawl_common::spider::SpiderText;

use super::{Fault, Servers};

#[async_trait]
impl SpiderTexts for Servers {
    async fn spider_text(&self, _: &CrawlRef) -> Result<Option<SpiderText>> {
        Ok(None)
    }
}

#[async_trait]
impl Stats for Servers {
    async fn crawl_stats(&self, _: &CrawlId) -> Result<Option<CrawlStats>> {
        Ok(None)
    }

    async fn crawls(&self) -> Result<Vec<CrawlStats>> {
        Ok(Vec::new())
    }

    async fn hosts(&self, _: &CrawlRef, _: usize) -> Result<Vec<HostStats>> {
        Ok(Vec::new())
    }

    async fn backlog(&self, _: &CrawlRef) -> Result<Backlog> {
        Ok(Backlog::default())
    }

    async fn terms(&self, _: &CrawlRef) -> Result<Terms> {
        match self.state().fault {
            Fault::UnreadableCrawls => Err(Error::new(ErrorKind::Corrupt, "max_pages is no number")),
            _ => Ok(Terms::default()),
        }
    }

    async fn url_state(&self, _: &CrawlRef, _: &Key) -> Result<UrlState> {
        unreachable!("nobody asks for a URL")
    }

    async fn tasks(&self, _: &CrawlRef, _: u64) -> Result<TaskPage> {
        unreachable!("nobody asks for tasks")
    }

    async fn workers(&self) -> Result<Vec<WorkerState>> {
        Ok(Vec::new())
    }

    async fn vanished(&self) -> Result<Vec<Vanished>> {
        Ok(Vec::new())
    }

    async fn places(&self, _: &CrawlRef) -> Result<Places> {
        Ok(Places::default())
    }

    async fn seen(&self, _: &SpiderName) -> Result<Option<u64>> {
        Ok(None)
    }

    async fn walk_seen(&self, _: &SpiderName, _: u64) -> Result<SeenUrls> {
        Ok(SeenUrls::default())
    }

    async fn seen_urls(&self, _: &SpiderName, _: &[Key]) -> Result<Vec<Seen>> {
        unreachable!("nobody asks for a URL")
    }

    async fn lanes(&self) -> Result<Vec<LaneState>> {
        Ok(Vec::new())
    }
}

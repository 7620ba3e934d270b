//! Operator view of crawls and workers.

use async_trait::async_trait;
use trawl_common::frontier::crawl::{CrawlStats, HostStats};
use trawl_common::frontier::{Key, UrlState};
use trawl_common::names::{CrawlId, CrawlRef, SpiderName};
use trawl_common::ports::{
    Backlog, LaneState, Places, Result, Seen, SeenUrls, SpiderTexts, Stats, TaskPage, Terms, Vanished,
    WorkerState,
};
use trawl_common::spider::SpiderText;

use crate::redis::RedisRecords;
use crate::redis::crawls::forgetting::Seeing;
use crate::redis::fields::Fields;
use crate::redis::keys::{self, CrawlKeys};

/// Maximum size of a spider's text that is read; more than may be deployed.
const MAX_TEXT: usize = 8 << 20;

/// Number of records from which the memory of all is estimated.
const MEASURED: u32 = 1000;
#[async_trait]
impl SpiderTexts for RedisRecords {
    /// Returns the text. Bytes that others wrote there and that are no text become mistakes of the file, which its
    /// reader reports.
    async fn spider_text(&self, crawl: &CrawlRef) -> Result<Option<SpiderText>> {
        let kept = self.redis.value(&CrawlKeys::new(crawl).text, MAX_TEXT).await?;
        Ok(kept.map(|bytes| String::from_utf8_lossy(&bytes).into_owned().into()))
    }
}

#[async_trait]
impl Stats for RedisRecords {
    async fn crawl_stats(&self, crawl: &CrawlId) -> Result<Option<CrawlStats>> {
        let spider: Option<String> =
            self.redis.query(redis::cmd("HGET").arg(keys::CRAWLS).arg(crawl.as_str())).await?;
        let listed = spider.map(|spider| (crawl.to_string(), spider)).into_iter().collect();
        let Some(spider) = Fields::new(keys::CRAWLS, listed).read(crawl.as_str())? else { return Ok(None) };
        self.read_stats(&CrawlRef { id: crawl.clone(), spider }).await
    }

    async fn crawls(&self) -> Result<Vec<CrawlStats>> {
        let mut all = Vec::new();
        for crawl in self.all_crawls().await? {
            let stats = self.read_stats(&crawl).await;
            all.extend(self.unless_wrong_type(&crawl, stats).await?.flatten());
        }
        all.sort_by_key(|stats| std::cmp::Reverse(stats.started));
        Ok(all)
    }

    async fn open_crawls(&self, spider: &SpiderName) -> Result<Vec<CrawlStats>> {
        let mut open = Vec::new();
        for crawl in self.open_crawls_of(spider).await? {
            let stats = self.read_stats(&crawl).await;
            open.extend(self.unless_wrong_type(&crawl, stats).await?.flatten());
        }
        open.retain(|stats| !stats.status.is_over());
        open.sort_by_key(|stats| std::cmp::Reverse(stats.started));
        Ok(open)
    }

    async fn hosts(&self, crawl: &CrawlRef, most: usize) -> Result<Vec<HostStats>> {
        self.read_hosts(crawl, most).await
    }

    async fn backlog(&self, crawl: &CrawlRef) -> Result<Backlog> {
        let mut call = self.scripts.backlog.on(&CrawlKeys::new(crawl));
        let reply = self.redis.run(call.arg(MEASURED)).await;
        let (urls, bytes) = self.unless_wrong_type(crawl, reply).await?.unwrap_or_default();
        Ok(Backlog { urls, bytes })
    }

    async fn terms(&self, crawl: &CrawlRef) -> Result<Terms> {
        self.read_terms(crawl).await
    }

    async fn url_state(&self, crawl: &CrawlRef, key: &Key) -> Result<UrlState> {
        self.read_url_state(crawl, key).await
    }

    async fn may_have_tasks(&self, crawl: &CrawlRef) -> Result<bool> {
        self.redis.query(redis::cmd("EXISTS").arg(CrawlKeys::new(crawl).recipes)).await
    }

    async fn tasks(&self, crawl: &CrawlRef, cursor: u64) -> Result<TaskPage> {
        self.list_tasks(crawl, cursor).await
    }

    async fn workers(&self) -> Result<Vec<WorkerState>> {
        self.read_workers().await
    }

    async fn vanished(&self) -> Result<Vec<Vanished>> {
        self.read_vanished().await
    }

    async fn places(&self, crawl: &CrawlRef) -> Result<Places> {
        self.read_places(crawl).await
    }

    async fn seen(&self, spider: &SpiderName) -> Result<Option<u64>> {
        self.count_seen(spider).await.map(Some)
    }

    async fn walk_seen(&self, spider: &SpiderName, cursor: u64) -> Result<SeenUrls> {
        self.scan_seen(spider, cursor).await
    }

    async fn seen_urls(&self, spider: &SpiderName, keys: &[Key]) -> Result<Vec<Seen>> {
        self.see(spider, keys, Seeing::Looking).await
    }

    async fn lanes(&self) -> Result<Vec<LaneState>> {
        self.read_lanes().await
    }
}

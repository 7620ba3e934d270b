//! What people see of crawls and workers.

use async_trait::async_trait;
use trawl_common::frontier::crawl::{Books, HostBooks};
use trawl_common::names::{CrawlId, CrawlRef};
use trawl_common::ports::{Backlog, Result, Stats, Terms, WorkerState};

use super::RedisRecords;
use super::fields::Fields;
use super::keys::{self, CrawlKeys};

/// By so many records it is told how much memory all of them take.
const MEASURED: u32 = 1000;
#[async_trait]
impl Stats for RedisRecords {
    async fn books(&self, crawl: &CrawlId) -> Result<Option<Books>> {
        let spider: Option<String> =
            self.query(redis::cmd("HGET").arg(keys::CRAWLS).arg(crawl.as_str())).await?;
        let listed = spider.map(|spider| (crawl.to_string(), spider)).into_iter().collect();
        let Some(spider) = Fields::new(keys::CRAWLS, listed).read(crawl.as_str())? else { return Ok(None) };
        self.read_books(&CrawlRef { id: crawl.clone(), spider }).await
    }

    async fn crawls(&self) -> Result<Vec<Books>> {
        let mut all = Vec::new();
        for crawl in self.all_crawls().await? {
            let books = self.read_books(&crawl).await;
            all.extend(self.unless_foreign(&crawl, books).await?.flatten());
        }
        all.sort_by_key(|books| std::cmp::Reverse(books.started));
        Ok(all)
    }

    async fn hosts(&self, crawl: &CrawlRef, most: usize) -> Result<Vec<HostBooks>> {
        self.read_hosts(crawl, most).await
    }

    async fn backlog(&self, crawl: &CrawlRef) -> Result<Backlog> {
        let mut call = self.scripts.backlog.key(CrawlKeys::new(crawl).pending);
        let told = self.run(call.arg(MEASURED)).await;
        let (urls, bytes) = self.unless_foreign(crawl, told).await?.unwrap_or_default();
        Ok(Backlog { urls, bytes })
    }

    async fn terms(&self, crawl: &CrawlRef) -> Result<Terms> {
        self.read_terms(crawl).await
    }

    async fn workers(&self) -> Result<Vec<WorkerState>> {
        self.read_workers().await
    }
}

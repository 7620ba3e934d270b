//! The list of crawls, and each one's books.

use std::collections::{BTreeMap, HashMap};

use trawl_common::crawl::{Books, Counts};
use trawl_common::names::CrawlRef;
use trawl_common::outcome::Terminal;
use trawl_common::ports::Result;
use trawl_common::time::UnixMs;

use super::keys::{self, CrawlKeys};
use super::{RedisFrontier, failed};

impl RedisFrontier {
    /// Enters the crawl into the list of all crawls.
    pub(super) async fn index(&self, crawl: &CrawlRef) -> Result<()> {
        let entry = (crawl.id.as_str(), crawl.spider.as_str());
        self.query(redis::cmd("HSET").arg(keys::CRAWLS).arg(entry.0).arg(entry.1)).await
    }

    pub(super) async fn all_crawls(&self) -> Result<Vec<CrawlRef>> {
        let index: BTreeMap<String, String> = self.query(redis::cmd("HGETALL").arg(keys::CRAWLS)).await?;
        Ok(index
            .into_iter()
            .filter_map(|(id, spider)| Some(CrawlRef { id: id.parse().ok()?, spider: spider.parse().ok()? }))
            .collect())
    }

    pub(super) async fn read_books(&self, crawl: &CrawlRef) -> Result<Option<Books>> {
        let keys = CrawlKeys::new(crawl);
        let mut pipeline = redis::pipe();
        pipeline.atomic().cmd("HGETALL").arg(&keys.crawl).cmd("HLEN").arg(&keys.pending);
        let (fields, pending): (HashMap<String, String>, u64) =
            pipeline.query_async(&mut self.redis.clone()).await.map_err(failed)?;
        let Some(status) = fields.get("status").and_then(|status| status.parse().ok()) else {
            return Ok(None);
        };
        let number = |field: &str| fields.get(field).and_then(|text| text.parse::<u64>().ok());
        let mut counts = Counts { admitted: number("admitted").unwrap_or(0), ..Counts::default() };
        for terminal in Terminal::ALL {
            *counts.of(terminal) = number(terminal.as_str()).unwrap_or(0);
        }
        let started = number("started").map_or_else(UnixMs::now, UnixMs);
        let ended = number("ended").map_or_else(UnixMs::now, UnixMs);
        Ok(Some(Books {
            crawl: crawl.id.clone(),
            spider: crawl.spider.clone(),
            status,
            counts,
            pending,
            seconds: ended.wait_from(started).as_secs_f64(),
            discovered: fields.get("discovery").is_some_and(|discovery| discovery == "ended"),
            started,
        }))
    }
}

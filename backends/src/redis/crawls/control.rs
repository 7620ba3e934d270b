//! Operator commands for crawls and their dead letters.

use async_trait::async_trait;
use redis::AsyncCommands;
use tracing::warn;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::dead_letter::DeadLetterEntry;
use trawl_common::frontier::{Key, TaskKey, Work};
use trawl_common::names::{CrawlRef, SpiderName, WorkerId};
use trawl_common::ports::{Control, Error, ErrorKind, FailedPage, HoldCrawl, Result, Seen};

use crate::notes;
use crate::redis::RedisRecords;
use crate::redis::crawls::forgetting::Seeing;
use crate::redis::crawls::news::HELD;
use crate::redis::failed;
use crate::redis::keys::CrawlKeys;
use crate::redis::recovery::corrupt;
use crate::redis::script_calls::BATCH;

/// Approximate number of failed URLs and tasks in one page.
const PAGE: usize = 500;

impl RedisRecords {
    /// Returns the payload of a task or a request of a crawl.
    async fn payload(&self, crawl: &CrawlRef, key: &str) -> Result<Option<String>> {
        let read = redis::cmd("HGET").arg(CrawlKeys::new(crawl).recipes).arg(key).to_owned();
        self.redis.query(&read).await
    }
}

#[async_trait]
impl HoldCrawl for RedisRecords {
    async fn hold(&self, crawl: &CrawlRef, why: &str) -> Result<()> {
        // First, so that nobody finds it paused without a reason.
        self.keep_noted(crawl, HELD, &why).await?;
        self.order(crawl, CrawlState::Paused).await
    }
}

#[async_trait]
impl Control for RedisRecords {
    async fn drain(&self, worker: &WorkerId) -> Result<bool> {
        self.ask_to_end(worker).await
    }

    async fn forget_seen(&self, spider: &SpiderName, keys: &[Key]) -> Result<Vec<Seen>> {
        self.see(spider, keys, Seeing::Forgetting).await
    }

    async fn forget_all_seen(&self, spider: &SpiderName) -> Result<()> {
        self.forget_all(spider).await
    }

    async fn forget_crawl(&self, crawl: &CrawlRef) -> Result<()> {
        self.forget_one(crawl).await
    }

    async fn pause(&self, crawl: &CrawlRef) -> Result<()> {
        self.order(crawl, CrawlState::Paused).await
    }

    async fn resume(&self, crawl: &CrawlRef) -> Result<()> {
        // First, so that nobody judges it by the pages before the pause.
        self.restart_window(crawl).await?;
        self.order(crawl, CrawlState::Running).await?;
        self.forget_held(crawl).await
    }

    async fn cancel(&self, crawl: &CrawlRef) -> Result<()> {
        self.order(crawl, CrawlState::Cancelled).await?;
        while self.clear_step(crawl).await? > 0 {}
        Ok(())
    }

    async fn cancel_tasks(&self, crawl: &CrawlRef, keys: &[TaskKey]) -> Result<u64> {
        self.cancel_each(crawl, keys).await
    }

    async fn await_durable(&self, crawl: &CrawlRef) -> Result<()> {
        self.await_orders(crawl).await
    }

    async fn failed(&self, crawl: &CrawlRef, cursor: u64) -> Result<FailedPage> {
        let mut scan = redis::cmd("HSCAN");
        scan.arg(CrawlKeys::new(crawl).failed).arg(cursor).arg("COUNT").arg(PAGE);
        let (next, entries): (u64, Vec<(Vec<u8>, Vec<u8>)>) = self.redis.query(&scan).await?;
        let mut failed = Vec::with_capacity(entries.len());
        for (url, stored) in entries {
            let note = notes::stored(&stored);
            match str::from_utf8(&url).ok().and_then(|key| Key::recorded(key).ok()) {
                Some(key) => failed.push((key, note)),
                None => {
                    warn!(crawl = %crawl.id, url = corrupt::shown(&url), error = note.cause.error, "no URL")
                }
            }
        }
        Ok(FailedPage { failed, next: (next > 0).then_some(next) })
    }

    async fn count_failed(&self, crawl: &CrawlRef) -> Result<u64> {
        let of = CrawlKeys::new(crawl);
        let mut count = 0;
        for list in [of.failed, of.invalid] {
            count += self.redis.query::<u64>(redis::cmd("HLEN").arg(list)).await?;
        }
        Ok(count)
    }

    async fn failure(&self, crawl: &CrawlRef, key: &Key) -> Result<Option<DeadLetterEntry>> {
        let mut redis = self.redis.clone();
        let stored: Option<Vec<u8>> =
            redis.hget(CrawlKeys::new(crawl).failed, key.as_str()).await.map_err(failed)?;
        Ok(stored.as_deref().map(notes::stored))
    }

    async fn work(&self, crawl: &CrawlRef, key: &Key) -> Result<Option<Work>> {
        let payload = match key {
            Key::Url(_) => String::new(),
            Key::Request(_) | Key::Task(_) => match self.payload(crawl, key.as_str()).await? {
                Some(payload) => payload,
                None => return Ok(None),
            },
        };
        let unreadable =
            || Error::new(ErrorKind::Corrupt, format!("redis: what is kept of {key} cannot be read"));
        Work::stored(key.clone(), &payload).map(Some).ok_or_else(unreadable)
    }

    async fn invalid(&self, crawl: &CrawlRef) -> Result<Vec<(String, DeadLetterEntry)>> {
        let read = redis::cmd("HGETALL").arg(CrawlKeys::new(crawl).invalid).to_owned();
        let all: Vec<(String, Vec<u8>)> = self.redis.query(&read).await?;
        Ok(all.into_iter().map(|(text, note)| (text, notes::stored(&note))).collect())
    }

    async fn purge_invalid(&self, crawl: &CrawlRef, texts: &[String]) -> Result<u64> {
        let mut purged = 0;
        for batch in texts.chunks(BATCH) {
            let delete = redis::cmd("HDEL").arg(CrawlKeys::new(crawl).invalid).arg(batch).to_owned();
            purged += self.redis.query::<u64>(&delete).await?;
        }
        Ok(purged)
    }

    async fn purge(&self, crawl: &CrawlRef, keys: &[Key]) -> Result<u64> {
        let of = CrawlKeys::new(crawl);
        let mut purged = 0;
        for batch in keys.chunks(BATCH) {
            let mut call = self.scripts.purge.on(&of);
            for key in batch {
                call.arg(key.as_str());
            }
            purged += self.redis.run::<u64>(&call).await?;
        }
        Ok(purged)
    }
}

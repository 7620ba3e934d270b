//! The status of crawls, read at a cost that does not grow with the finished ones.
//!
//! A crawl that is over, announced and cleaned up stays so. A process remembers for a while which crawls are, and
//! reads the others. One that is forgotten and opened again under its id is read at once: opening lists it in
//! [`keys::OPEN_CRAWLS`].

use std::collections::HashMap;
use std::time::Duration;

use trawl_common::frontier::crawl::CrawlState;
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::ports::{ErrorKind, Result};
use trawl_common::time::UnixMs;

use crate::redis::fields::Fields;
use crate::redis::keys::{self, CrawlKeys};
use crate::redis::{RedisRecords, failed};

/// Maximum number of crawls that a process remembers to be over.
pub(crate) const MAX_ENDED: u64 = 100_000;
/// Time that it remembers one. Programs that do not list the crawls they open may open one again.
pub(crate) const ENDED_TTL: Duration = Duration::from_secs(10 * 60);

/// The fields of a crawl's status.
const STANDING: [&str; 8] =
    ["status", "announced", "cleared", "done", "done_before", "max_pages", "ended", "evicted"];

/// The status of a crawl.
#[derive(Clone)]
pub(crate) struct Standing {
    pub(crate) crawl: CrawlRef,
    pub(crate) status: Option<CrawlState>,
    pub(crate) is_announced: bool,
    pub(crate) is_cleared: bool,
    /// Number of pages that it has done.
    pub(crate) done: u64,
    /// Maximum number of pages.
    pub(crate) max_pages: Option<u64>,
    pub(crate) ended: UnixMs,
    /// Whether the server may have evicted data of this crawl.
    pub(crate) is_evicted: bool,
    pub(crate) records: u64,
}

impl Standing {
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.status, Some(CrawlState::Finished | CrawlState::Cancelled))
    }

    /// Returns whether nothing is left to be done about it.
    fn is_settled(&self) -> bool {
        self.is_over() && self.is_announced && self.is_cleared
    }

    /// Returns whether it has done all the pages that it may.
    pub(crate) fn is_full(&self) -> bool {
        self.max_pages.is_some_and(|most| self.done >= most)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.status == Some(CrawlState::Running)
    }

    /// Returns whether its records are swept: also during a pause, because RabbitMQ may lose their messages then.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.status, Some(CrawlState::Running | CrawlState::Paused))
    }
}

impl RedisRecords {
    /// Returns the status of every crawl that can be read, in the order of their names.
    pub(crate) async fn standings(&self) -> Result<Vec<Standing>> {
        let all = self.all_crawls().await?;
        let listed = self.listed_as_open().await?;
        let known =
            |crawl: &CrawlRef| self.over.get(crawl).filter(|_| !listed.contains_key(crawl.id.as_str()));
        let (mut standings, mut unknown) = (Vec::with_capacity(all.len()), Vec::new());
        for crawl in all {
            match known(&crawl) {
                Some(standing) => standings.push(standing),
                None => unknown.push(crawl),
            }
        }
        let (settled, open): (Vec<_>, Vec<_>) =
            self.read_standings(&unknown).await?.into_iter().partition(Standing::is_settled);
        let unlisted = settled.iter().map(|one| one.crawl.id.as_str()).filter(|id| listed.contains_key(*id));
        let unlisted: Vec<&str> = unlisted.collect();
        if !unlisted.is_empty() {
            self.write::<()>(redis::cmd("HDEL").arg(keys::OPEN_CRAWLS).arg(&unlisted)).await?;
        }
        settled.iter().for_each(|one| self.over.insert(one.crawl.clone(), one.clone()));
        standings.extend(settled);
        standings.extend(open);
        standings.sort_by(|one, other| one.crawl.id.cmp(&other.crawl.id));
        Ok(standings)
    }

    /// Returns a spider's crawls that are not known to be over.
    pub(crate) async fn open_crawls_of(&self, spider: &SpiderName) -> Result<Vec<CrawlRef>> {
        let mut all = self.all_crawls().await?;
        let listed = self.listed_as_open().await?;
        all.retain(|crawl| {
            let is_listed = || listed.contains_key(crawl.id.as_str());
            crawl.spider == *spider && (is_listed() || !self.over.contains_key(crawl))
        });
        let standings = self.read_standings(&all).await?;
        let settled = standings.iter().filter(|one| one.is_settled());
        settled.for_each(|one| self.over.insert(one.crawl.clone(), one.clone()));
        Ok(standings.into_iter().filter(|one| !one.is_over()).map(|one| one.crawl).collect())
    }

    /// Lists a crawl that is being opened.
    pub(crate) async fn note_open(&self, crawl: &CrawlRef) -> Result<()> {
        let (id, spider) = (crawl.id.as_str(), crawl.spider.as_str());
        self.write(redis::cmd("HSET").arg(keys::OPEN_CRAWLS).arg(id).arg(spider)).await
    }

    /// Returns the crawls that are listed as open, by id.
    async fn listed_as_open(&self) -> Result<HashMap<String, String>> {
        self.redis.query(redis::cmd("HGETALL").arg(keys::OPEN_CRAWLS)).await
    }

    /// Returns the status of each of these that can be read.
    async fn read_standings(&self, crawls: &[CrawlRef]) -> Result<Vec<Standing>> {
        match self.standings_of(crawls).await {
            Err(error) if error.kind == ErrorKind::Corrupt => {}
            reply => return reply,
        }
        // One by one, to find the unreadable one.
        let mut standings = Vec::with_capacity(crawls.len());
        for crawl in crawls {
            let reply = self.standings_of(std::slice::from_ref(crawl)).await;
            standings.extend(self.unless_wrong_type(crawl, reply).await?.unwrap_or_default());
        }
        Ok(standings)
    }

    async fn standings_of(&self, crawls: &[CrawlRef]) -> Result<Vec<Standing>> {
        if crawls.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = redis::pipe();
        for crawl in crawls {
            let keys = CrawlKeys::new(crawl);
            pipeline.cmd("HMGET").arg(keys.crawl).arg(&STANDING);
            pipeline.cmd("HLEN").arg(keys.pending);
        }
        let reply: Vec<redis::Value> = pipeline.query_async(&mut self.redis.clone()).await.map_err(failed)?;
        crawls
            .iter()
            .zip(reply.chunks_exact(2))
            .map(|(crawl, reply)| standing(crawl.clone(), reply))
            .collect()
    }
}

fn standing(crawl: CrawlRef, reply: &[redis::Value]) -> Result<Standing> {
    let stored: Vec<Option<String>> =
        redis::from_redis_value_ref(&reply[0]).map_err(|error| failed(error.into()))?;
    let stored = STANDING.into_iter().zip(stored);
    let stored = stored.filter_map(|(name, text)| Some((name.to_owned(), text?)));
    let fields = Fields::new(CrawlKeys::new(&crawl).crawl, stored.collect());
    let done = fields.count("done")? + fields.count("done_before")?;
    Ok(Standing {
        crawl,
        status: fields.read("status")?,
        is_announced: fields.count("announced")? == 1,
        is_cleared: fields.count("cleared")? == 1,
        done,
        max_pages: fields.read("max_pages")?,
        ended: UnixMs(fields.count("ended")?),
        is_evicted: fields.count("evicted")? == 1,
        records: redis::from_redis_value_ref(&reply[1]).map_err(|error| failed(error.into()))?,
    })
}

//! Opening crawls, and the leases of the processes that read their sources.

use std::time::Duration;

use redis::{FromRedisValue, Value};
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::ports::{Error, ErrorKind, Result, Terms};
use trawl_engine::Lease;

use crate::control_log::Record;
use crate::redis::RedisRecords;
use crate::redis::keys::CrawlKeys;
use crate::redis::recovery::restore::forgotten;
use crate::redis::recovery::second_home::Past;
use crate::redis::script_calls::{corrupt, limits, over};

impl RedisRecords {
    /// Takes the lease of a crawl, which is created if it is not known.
    pub(crate) async fn take_lease(
        &self,
        crawl: &CrawlRef,
        terms: Terms,
        holder: &str,
        ttl: Duration,
        past: Past,
    ) -> Result<Lease> {
        self.claim_id(crawl).await?;
        let token = rand::random();
        if let Some((opened, is_news)) = self.try_open(crawl, token, terms, holder, ttl).await? {
            if is_news {
                self.log(|| Record::opened(crawl, opened.terms)).await?;
            }
            return Ok(opened);
        }
        self.create(crawl, terms, past).await?;
        let opened = self.try_open(crawl, token, terms, holder, ttl).await?;
        opened.map(|(lease, _)| lease).ok_or_else(|| forgotten(crawl))
    }

    /// Returns the lease, and whether the log has to say that the crawl was opened: its limits may differ from earlier
    /// ones, or its sources are read again. Returns `None` if the crawl is not known.
    async fn try_open(
        &self,
        crawl: &CrawlRef,
        token: u64,
        terms: Terms,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<(Lease, bool)>> {
        let keys = CrawlKeys::new(crawl);
        let mut call = self.scripts.open.prepare_invoke();
        call.key(&keys.leases).key(&keys.crawl);
        call.arg(token).arg(holder).arg(ttl.as_millis() as u64).arg(crawl.id.as_str());
        limits(&mut call, terms);
        let answer: Vec<Value> = self.redis.run(&call).await?;
        let text =
            |at: usize| answer.get(at).and_then(|v| String::from_redis_value_ref(v).ok()).unwrap_or_default();
        match text(0).as_str() {
            "ok" => {
                let recrawl = text(1).parse().map_err(|_| corrupt("open"))?;
                let is_news = text(2) != "0";
                Ok(Some((Lease { crawl: crawl.clone(), token, terms: Terms { recrawl, ..terms } }, is_news)))
            }
            "unknown" => Ok(None),
            "over" => Err(over(crawl, &text(1))),
            "busy" => Err(busy(&crawl.spider, &text(1), &text(2), text(3).parse().unwrap_or_default())),
            _ => Err(corrupt("open")),
        }
    }
}

fn busy(spider: &SpiderName, holder: &str, crawl: &str, left_ms: u64) -> Error {
    let seconds = left_ms.div_ceil(1000);
    let text = format!(
        "spider {spider} is being fed already: {holder} reads the sources of crawl {crawl}, which `--crawl {crawl}` joins \
         (if it died, its lease lapses in {seconds} s)"
    );
    Error::new(ErrorKind::Busy, text)
}

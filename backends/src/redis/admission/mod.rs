//! Admission: opening crawls, the leases of the processes that read their sources, and the URLs that those admit.

mod outbox;

use std::time::Duration;

use async_trait::async_trait;
use redis::{FromRedisValue, ScriptInvocation, Value};
use serde_json::json;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::judging::Judging;
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::ports::{Error, ErrorKind, NewWork, Result, SourcesRead, Terms};
use trawl_common::spider::SpiderText;
use trawl_engine::{Admission, Lease, Past, Run};

use crate::control_log::Record;
use crate::redis::RedisRecords;
use crate::redis::crawls::news::JUDGING;
use crate::redis::keys::CrawlKeys;
use crate::redis::recovery::restore::forgotten;
use crate::redis::script_calls::{batches, corrupt, limits, optional, over};
use crate::redis::scripts::codes::closing;
use crate::redis::seen::entry;

#[async_trait]
impl Admission for RedisRecords {
    async fn open(
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

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<()> {
        let mut call = self.scripts.renew.on(&CrawlKeys::new(&lease.crawl));
        call.arg(lease.token).arg(ttl.as_millis() as u64);
        self.follow_clock().await?;
        if self.redis.run(&call).await? { Ok(()) } else { Err(stale(lease)) }
    }

    async fn admit(&self, lease: &Lease, urls: &[NewWork]) -> Result<Vec<bool>> {
        self.check_eviction()?;
        let keys = CrawlKeys::new(&lease.crawl);
        let mut new = Vec::with_capacity(urls.len());
        for batch in batches(urls, payload_bytes) {
            let mut call = self.scripts.admit.on(&keys);
            call.arg(lease.token).arg(lease.crawl.id.as_str());
            admission_args(&mut call, batch);
            let answer: Vec<bool> = self.redis.run(&call).await?;
            if answer.len() != batch.len() {
                return Err(stale(lease));
            }
            new.extend(answer);
        }
        Ok(new)
    }

    async fn run(&self, crawl: &CrawlRef) -> Result<Run> {
        let call = self.scripts.run.on(&CrawlKeys::new(crawl));
        self.redis.run(&call).await.map(Run)
    }

    async fn close(&self, lease: Lease, read: Option<SourcesRead>) -> Result<()> {
        let mut call = self.scripts.close.on(&CrawlKeys::new(&lease.crawl));
        call.arg(lease.token);
        call.arg(match read {
            None | Some(SourcesRead { is_submission: true, .. }) => "-",
            Some(SourcesRead { incomplete: true, .. }) => "unread",
            Some(SourcesRead { is_once: true, .. }) => "once",
            Some(_) => "read",
        });
        for (reason, number) in read.iter().flat_map(SourcesRead::reasons) {
            call.arg(reason).arg(number);
        }
        match self.redis.run(&call).await? {
            closing::STALE => Err(stale(&lease)),
            closing::FINISHED => {
                self.log_discovery(&lease.crawl).await?;
                self.log_end(&lease.crawl, CrawlState::Finished).await;
                Ok(())
            }
            closing::DISCOVERED => self.log_discovery(&lease.crawl).await,
            closing::CLOSED => Ok(()),
            _ => Err(corrupt("close")),
        }
    }

    async fn keep_spider_text(&self, crawl: &CrawlRef, text: &SpiderText) -> Result<()> {
        let keep = redis::cmd("SET").arg(CrawlKeys::new(crawl).text).arg(text.as_str()).arg("NX").to_owned();
        self.redis.query::<Option<String>>(&keep).await.map(drop)
    }

    async fn keep_judging(&self, crawl: &CrawlRef, judging: &Judging) -> Result<()> {
        self.keep_noted(crawl, JUDGING, judging).await?;
        self.watch_quality(crawl, judging).await
    }
}

impl RedisRecords {
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
        let mut call = self.scripts.open.on(&CrawlKeys::new(crawl));
        let ask = json!({
            "token": token.to_string(),
            "holder": holder,
            "ttl": ttl.as_millis() as u64,
            "id": crawl.id.as_str(),
            "terms": limits(terms),
        });
        call.arg(ask.to_string());
        let answer: Vec<Value> = self.redis.run(&call).await?;
        let text =
            |at: usize| answer.get(at).and_then(|v| String::from_redis_value_ref(v).ok()).unwrap_or_default();
        match text(0).as_str() {
            "ok" => {
                let recrawl = text(1).parse().map_err(|_| corrupt("open"))?;
                let is_news = text(2) != "0";
                let replays = match text(3).as_str() {
                    "-" => None,
                    period => Some(period.parse().map_err(|_| corrupt("open"))?),
                };
                let terms = Terms { recrawl, replays, ..terms };
                Ok(Some((Lease { crawl: crawl.clone(), token, terms }, is_news)))
            }
            "unknown" => Ok(None),
            "over" => Err(over(crawl, &text(1))),
            "busy" => Err(busy(&crawl.spider, &text(1), &text(2), text(3).parse().unwrap_or_default())),
            _ => Err(corrupt("open")),
        }
    }
}

/// Adds the URLs for a script that admits them.
pub(crate) fn admission_args(call: &mut ScriptInvocation<'_>, urls: &[NewWork]) {
    for url in urls {
        entry(call, url.work.as_str());
        call.arg(url.lane.as_str());
        call.arg(optional(url.deadline.map(|deadline| deadline.0))).arg(url.depth);
        if let Some(payload) = url.work.payload() {
            call.arg(payload);
        }
    }
}

/// Approximate size of its payload in bytes, beside its record.
pub(crate) fn payload_bytes(url: &NewWork) -> usize {
    url.work.payload_bytes()
}

fn stale(lease: &Lease) -> Error {
    let crawl = &lease.crawl.id;
    Error::new(ErrorKind::Stale, format!("crawl {crawl} is over, or its lease has lapsed"))
}

fn busy(spider: &SpiderName, holder: &str, crawl: &str, left_ms: u64) -> Error {
    let seconds = left_ms.div_ceil(1000);
    let text = format!(
        "spider {spider} is being fed already: {holder} reads the sources of crawl {crawl}, which `--crawl {crawl}` joins \
         (if it died, its lease lapses in {seconds} s)"
    );
    Error::new(ErrorKind::Busy, text)
}

//! The frontier on Redis: records in `T:pending:<crawl>`, books in `T:crawl:<id>`.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use async_trait::async_trait;
use redis::{FromRedisValue, ScriptInvocation, Value};
use trawl_common::crawl::Books;
use trawl_common::message::Message;
use trawl_common::names::{CrawlId, CrawlRef, SpiderName, WorkerId};
use trawl_common::ports::{
    Claim, Discovery, Error, ErrorKind, Finish, Frontier, Heard, Heartbeat, MAX_STARTS, NewUrl, Parking,
    Result, Start,
};
use trawl_common::time::UnixMs;
use trawl_common::url::CanonicalUrl;

use super::keys::{self, CrawlKeys};
use super::scripts::Scripts;
use super::{Link, failed};

/// Most URLs in one call of a script: Redis does nothing else meanwhile.
const BATCH: usize = 500;
/// How long `failures:<url>` outlives the last failure.
const FAILURES_TTL: Duration = Duration::from_secs(24 * 3600);

/// A frontier on Redis.
pub struct RedisFrontier {
    pub(super) redis: Link,
    pub(super) scripts: Scripts,
}

impl RedisFrontier {
    /// On this connection.
    pub fn new(redis: Link) -> Self {
        Self { redis, scripts: Scripts::new() }
    }

    pub(super) async fn run<T: FromRedisValue>(&self, call: &ScriptInvocation<'_>) -> Result<T> {
        call.invoke_async(&mut self.redis.clone()).await.map_err(failed)
    }

    pub(super) async fn query<T: FromRedisValue>(&self, command: &redis::Cmd) -> Result<T> {
        command.query_async(&mut self.redis.clone()).await.map_err(failed)
    }

    /// Hears the messages of one crawl, taking over what `dead` workers hold.
    async fn hear_crawl(
        &self,
        worker: &WorkerId,
        crawl: &CrawlRef,
        messages: &[&Message],
        dead: &HashSet<String>,
    ) -> Result<Vec<Value>> {
        let keys = CrawlKeys::new(crawl);
        let mut call = self.scripts.hear.prepare_invoke();
        call.key(&keys.crawl).key(&keys.seen).key(&keys.pending);
        call.arg(worker.as_str()).arg(crawl.spider.as_str()).arg(dead.len());
        for worker in dead {
            call.arg(worker);
        }
        for message in messages {
            call.arg(message.url.as_str()).arg(message.lane.as_str()).arg(message.depth);
            call.arg(optional(message.deadline.map(|deadline| deadline.0)));
            call.arg(optional(message.referrer.as_ref()));
        }
        let mut answer: Vec<Value> = self.run(&call).await?;
        if answer.is_empty() {
            return Err(corrupt("hear"));
        }
        let told = answer.split_off(1);
        if answer[0] == Value::Int(1) {
            self.index(crawl).await?;
        }
        Ok(told)
    }

    async fn mirror_failures(&self, attempts: &[(&CanonicalUrl, i64)]) -> Result<()> {
        if attempts.is_empty() {
            return Ok(());
        }
        let mut pipeline = redis::pipe();
        for (url, count) in attempts {
            let seconds = FAILURES_TTL.as_secs();
            pipeline.cmd("SET").arg(keys::failures(url)).arg(count).arg("EX").arg(seconds).ignore();
        }
        pipeline.query_async(&mut self.redis.clone()).await.map_err(failed)
    }
}

#[async_trait]
impl Frontier for RedisFrontier {
    async fn open(&self, crawl: &CrawlRef, holder: &str, ttl: Duration) -> Result<Discovery> {
        let keys = CrawlKeys::new(crawl);
        let token = rand::random::<u64>();
        self.index(crawl).await?;
        let mut call = self.scripts.open.prepare_invoke();
        call.key(&keys.lease).key(&keys.crawl);
        call.arg(token)
            .arg(holder)
            .arg(ttl.as_millis() as u64)
            .arg(crawl.id.as_str())
            .arg(crawl.spider.as_str());
        let answer: Vec<Value> = self.run(&call).await?;
        let text =
            |at: usize| answer.get(at).and_then(|v| String::from_redis_value_ref(v).ok()).unwrap_or_default();
        match text(0).as_str() {
            "ok" => Ok(Discovery { crawl: crawl.clone(), token }),
            "over" => Err(Error::new(ErrorKind::Stale, format!("crawl {} is {}", crawl.id, text(1)))),
            "busy" => Err(busy(&crawl.spider, &text(1), text(2).parse().unwrap_or_default())),
            _ => Err(corrupt("open")),
        }
    }

    async fn renew(&self, lease: &Discovery, ttl: Duration) -> Result<()> {
        let keys = CrawlKeys::new(&lease.crawl);
        let mut call = self.scripts.renew.prepare_invoke();
        call.key(&keys.lease).arg(lease.token).arg(ttl.as_millis() as u64);
        if self.run(&call).await? { Ok(()) } else { Err(stale(lease)) }
    }

    async fn admit(&self, lease: &Discovery, urls: &[NewUrl]) -> Result<Vec<bool>> {
        let keys = CrawlKeys::new(&lease.crawl);
        let mut new = Vec::with_capacity(urls.len());
        for batch in urls.chunks(BATCH) {
            let mut call = self.scripts.admit.prepare_invoke();
            call.key(&keys.lease).key(&keys.crawl).key(&keys.seen).key(&keys.pending).key(&keys.outbox);
            call.arg(lease.token).arg(lease.crawl.id.as_str());
            for url in batch {
                call.arg(url.url.as_str()).arg(url.lane.as_str());
                call.arg(optional(url.deadline.map(|deadline| deadline.0)));
            }
            let answer: Vec<bool> = self.run(&call).await?;
            if answer.len() != batch.len() {
                return Err(stale(lease));
            }
            new.extend(answer);
        }
        Ok(new)
    }

    async fn confirm(&self, crawl: &CrawlRef, urls: &[CanonicalUrl]) -> Result<()> {
        let keys = CrawlKeys::new(crawl);
        for batch in urls.chunks(BATCH) {
            let mut call = self.scripts.confirm.prepare_invoke();
            call.key(&keys.pending).key(&keys.outbox).arg(crawl.id.as_str());
            for url in batch {
                call.arg(url.as_str());
            }
            let () = self.run(&call).await?;
        }
        Ok(())
    }

    async fn close(&self, lease: Discovery) -> Result<()> {
        let keys = CrawlKeys::new(&lease.crawl);
        let mut call = self.scripts.close.prepare_invoke();
        call.key(&keys.lease).key(&keys.crawl).key(&keys.pending).arg(lease.token);
        if self.run(&call).await? { Ok(()) } else { Err(stale(&lease)) }
    }

    async fn hear(&self, worker: &WorkerId, messages: &[Message]) -> Result<Vec<Heard>> {
        let mut heard = vec![Heard::Drop; messages.len()];
        for (crawl, places) in by_crawl(messages, |message| &message.crawl) {
            for places in places.chunks(BATCH) {
                let batch: Vec<&Message> = places.iter().map(|&at| &messages[at]).collect();
                let mut told = self.hear_crawl(worker, crawl, &batch, &HashSet::new()).await?;
                let holders: HashSet<String> = told.iter().filter_map(holder).collect();
                let dead = self.lapsed(holders).await?;
                if !dead.is_empty() {
                    told = self.hear_crawl(worker, crawl, &batch, &dead).await?;
                }
                for (&at, answer) in places.iter().zip(&told) {
                    if let Value::Int(attempts @ 0..) = answer {
                        heard[at] = Heard::Take { attempts: *attempts as u32 };
                    }
                }
            }
        }
        Ok(heard)
    }

    async fn start(&self, worker: &WorkerId, claims: &[Claim]) -> Result<Vec<Start>> {
        let mut starts = vec![Start::Lost; claims.len()];
        for (crawl, places) in by_crawl(claims, |claim| &claim.crawl) {
            let keys = CrawlKeys::new(crawl);
            for places in places.chunks(BATCH) {
                let mut call = self.scripts.start.prepare_invoke();
                call.key(&keys.pending).arg(worker.as_str()).arg(MAX_STARTS);
                for &at in places {
                    call.arg(claims[at].url.as_str());
                }
                let answer: Vec<u8> = self.run(&call).await?;
                for (&at, told) in places.iter().zip(answer) {
                    starts[at] = match told {
                        1 => Start::Go,
                        2 => Start::Poison,
                        _ => Start::Lost,
                    };
                }
            }
        }
        Ok(starts)
    }

    async fn park(&self, worker: &WorkerId, parkings: &[Parking]) -> Result<Vec<bool>> {
        let mut held = vec![false; parkings.len()];
        for (crawl, places) in by_crawl(parkings, |parking| &parking.claim.crawl) {
            let keys = CrawlKeys::new(crawl);
            for places in places.chunks(BATCH) {
                let mut call = self.scripts.park.prepare_invoke();
                call.key(&keys.pending).key(&keys.outbox).arg(worker.as_str()).arg(crawl.id.as_str());
                for &at in places {
                    let parking = &parkings[at];
                    call.arg(parking.claim.url.as_str()).arg(parking.until.0).arg(u8::from(parking.failed));
                }
                let answer: Vec<i64> = self.run(&call).await?;
                let mut failures = Vec::new();
                for (&at, attempts) in places.iter().zip(answer) {
                    held[at] = attempts >= 0;
                    if held[at] && parkings[at].failed {
                        failures.push((&parkings[at].claim.url, attempts));
                    }
                }
                self.mirror_failures(&failures).await?;
            }
        }
        Ok(held)
    }

    async fn release(&self, worker: &WorkerId, claims: &[Claim]) -> Result<()> {
        for (crawl, places) in by_crawl(claims, |claim| &claim.crawl) {
            let keys = CrawlKeys::new(crawl);
            for places in places.chunks(BATCH) {
                let mut call = self.scripts.release.prepare_invoke();
                call.key(&keys.pending).arg(worker.as_str());
                for &at in places {
                    call.arg(claims[at].url.as_str());
                }
                let () = self.run(&call).await?;
            }
        }
        Ok(())
    }

    async fn finish(&self, finishes: &[Finish]) -> Result<Vec<bool>> {
        let mut ended = vec![false; finishes.len()];
        for (crawl, places) in by_crawl(finishes, |finish| &finish.claim.crawl) {
            let keys = CrawlKeys::new(crawl);
            for places in places.chunks(BATCH) {
                let mut call = self.scripts.finish.prepare_invoke();
                call.key(&keys.crawl).key(&keys.pending).key(&keys.failed).key(&keys.outbox);
                call.arg(crawl.id.as_str());
                for &at in places {
                    let finish = &finishes[at];
                    call.arg(finish.claim.url.as_str()).arg(finish.terminal.as_str());
                    call.arg(finish.note.as_deref().unwrap_or_default());
                }
                let answer: Vec<bool> = self.run(&call).await?;
                for (&at, told) in places.iter().zip(answer) {
                    ended[at] = told;
                }
            }
        }
        Ok(ended)
    }

    async fn sweep(&self, worker: &WorkerId) -> Result<Vec<Message>> {
        self.sweep_all(worker).await
    }

    async fn beat(&self, beat: &Heartbeat, ttl: Duration) -> Result<()> {
        let key = keys::worker(&beat.worker);
        let now = UnixMs::now();
        let mut pipeline = redis::pipe();
        pipeline
            .cmd("HSET")
            .arg(&key)
            .arg("version")
            .arg(beat.version)
            .arg("in_flight")
            .arg(beat.in_flight)
            .arg("pages_per_second")
            .arg(format!("{:.1}", beat.pages_per_second))
            .arg("seen")
            .arg(now.to_string())
            .ignore();
        pipeline.cmd("PEXPIRE").arg(&key).arg(ttl.as_millis() as u64).ignore();
        pipeline.cmd("ZADD").arg(keys::WORKERS).arg(now.0).arg(beat.worker.as_str()).ignore();
        pipeline.query_async(&mut self.redis.clone()).await.map_err(failed)
    }

    async fn books(&self, crawl: &CrawlId) -> Result<Option<Books>> {
        let spider: Option<String> =
            self.query(redis::cmd("HGET").arg(keys::CRAWLS).arg(crawl.as_str())).await?;
        let Some(spider) = spider.and_then(|spider| spider.parse().ok()) else { return Ok(None) };
        self.read_books(&CrawlRef { id: crawl.clone(), spider }).await
    }

    async fn crawls(&self) -> Result<Vec<Books>> {
        let mut all = Vec::new();
        for crawl in self.all_crawls().await? {
            all.extend(self.read_books(&crawl).await?);
        }
        all.sort_by_key(|books| std::cmp::Reverse(books.started));
        Ok(all)
    }
}

/// The places of each crawl's entries, so that each call of a script touches one crawl.
fn by_crawl<'a, T>(
    entries: &'a [T],
    crawl: impl Fn(&'a T) -> &'a CrawlRef,
) -> BTreeMap<&'a CrawlRef, Vec<usize>> {
    let mut places: BTreeMap<&CrawlRef, Vec<usize>> = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate() {
        places.entry(crawl(entry)).or_default().push(at);
    }
    places
}

/// The worker that the answer of `hear` names, if it names one.
fn holder(answer: &Value) -> Option<String> {
    match answer {
        Value::Int(_) => None,
        other => String::from_redis_value_ref(other).ok(),
    }
}

/// A part of a record that may be absent.
fn optional(part: Option<impl ToString>) -> String {
    part.map_or_else(|| "-".to_owned(), |part| part.to_string())
}

fn busy(spider: &SpiderName, held: &str, left_ms: u64) -> Error {
    let mut parts = held.splitn(3, ' ').skip(1);
    let crawl = parts.next().unwrap_or("?");
    let holder = parts.next().unwrap_or("?");
    let seconds = left_ms.div_ceil(1000);
    let text = format!(
        "spider {spider} is being fed already: {holder} reads the sources of crawl {crawl} \
         (if it died, its lease lapses in {seconds} s)"
    );
    Error::new(ErrorKind::Busy, text)
}

fn stale(lease: &Discovery) -> Error {
    let crawl = &lease.crawl.id;
    Error::new(ErrorKind::Stale, format!("crawl {crawl} is over, or another producer took its lease"))
}

pub(super) fn corrupt(script: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("redis: the script {script} gave an answer of another shape"))
}

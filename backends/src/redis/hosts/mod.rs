//! Host schedules, shared by the fleet: `ratelimit:<host>`, and `hosts`, the index for listing them.

pub(crate) mod calls;
pub(crate) mod control;
pub(crate) mod news;
pub(crate) mod robots;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{join_all, try_join_all};
use moka::sync::Cache as Memory;
use redis::ScriptInvocation;
use serde_json::json;
use tracing::error;
use trawl_common::politeness::gcra::{BackoffTerms, FORGIVEN_AFTER, Slot, Standing};
use trawl_common::politeness::robots::{RobotsFile, RobotsKey};
use trawl_common::ports::{
    BackoffRequest, Ended, Error, ErrorKind, HostSlotRequest, Hosts, InFlightRequest, Result, RobotsEntry,
    SentLate,
};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;

use crate::rabbitmq::ControlLog;
use crate::redis::hosts::calls::{Part, call, parts};
use crate::redis::pages::budget::Budget;
use crate::redis::script_calls::corrupt;
use crate::redis::scripts::codes::{ended, slot};
use crate::redis::scripts::{Clock, HostScripts};
use crate::redis::server::full;
use crate::redis::{Link, failed, keys};

/// Time that a host is listed after a request.
const LISTED_TTL: Duration = Duration::from_secs(3_600);

/// Delay of a URL whose host's key holds something else.
const RETRY_DELAY: Duration = Duration::from_secs(60);

/// The interval at which the same host is put into the index.
const INDEX_INTERVAL: Duration = Duration::from_secs(60);

/// Number of hosts that a process remembers as indexed.
const MAX_INDEXED: u64 = 100_000;

/// Host schedules and robots.txt files on Redis.
pub struct RedisHosts {
    pub(crate) redis: Link,
    pub(crate) scripts: HostScripts,
    noted: Memory<HostKey, ()>,
    /// Hosts whose key holds something else, and that were logged lately.
    named: Memory<HostKey, ()>,
    robots: Budget,
    /// The log to which blocks are also written.
    pub(crate) log: Option<Arc<ControlLog>>,
    /// Minimum length of an announced back-off; zero for none.
    told_from: Duration,
}

impl RedisHosts {
    /// Creates the hosts on this connection, with a limit for all robots.txt files together.
    pub fn new(redis: Link, max_robots_bytes: u64) -> Self {
        Self::with_clock(redis, max_robots_bytes, Clock::SERVER)
    }

    pub(crate) fn with_clock(redis: Link, max_robots_bytes: u64, clock: Clock) -> Self {
        let noted = Memory::builder().max_capacity(MAX_INDEXED).time_to_live(INDEX_INTERVAL).build();
        let robots = Budget::for_robots(max_robots_bytes);
        let named = Memory::builder().max_capacity(MAX_INDEXED).time_to_live(LISTED_TTL).build();
        Self {
            redis,
            scripts: HostScripts::new(clock),
            noted,
            named,
            robots,
            log: None,
            told_from: Duration::ZERO,
        }
    }

    /// Also writes blocks to `log`.
    #[must_use]
    pub fn with_log(self, log: Arc<ControlLog>) -> Self {
        Self { log: Some(log), ..self }
    }

    /// Announces back-offs that are at least as long as `from`; none if it is zero.
    #[must_use]
    pub(crate) fn with_backoffs_from(self, from: Duration) -> Self {
        Self { told_from: from, ..self }
    }

    /// Makes all requests for some hosts in one call. Returns slots, each with the position of its request.
    async fn reserve_of(&self, part: Part<'_>, asks: &[HostSlotRequest]) -> Result<Vec<(usize, Slot)>> {
        try_join_all(part.0.iter().map(|(key, _)| self.note(key))).await?;
        let ms = |instant: Option<UnixMs>| instant.map_or(slot::NONE, |instant| instant.0 as i64);
        let tell = |call: &mut ScriptInvocation<'_>, place: usize| {
            let request = &asks[place].request;
            call.arg(request.pace.interval.as_micros() as u64)
                .arg(request.pace.burst.max(1))
                .arg(request.pace.concurrency)
                .arg(ms(request.held))
                .arg(ms(request.deadline))
                .arg(standing(request.standing))
                .arg(token(request.token))
                .arg(request.lapse.as_micros() as u64);
        };
        let mut slots = Vec::new();
        for (part, answer) in call::<Vec<i64>>(&self.redis, &self.scripts.reserve, part, tell).await {
            let places = part.places();
            match (answer, &part.0[..]) {
                (Ok(answer), _) => slots.extend(places.zip(read_slots(&answer)?)),
                (Err(error), [(key, _)]) if error.kind == ErrorKind::Corrupt => {
                    slots.extend(places.zip(std::iter::repeat(self.left_alone(key, &error))));
                }
                (Err(error), _) => return Err(error),
            }
        }
        Ok(slots)
    }

    /// Returns the answer for a host whose key others have overwritten: it is not requested, which is logged once,
    /// and all other hosts are.
    fn left_alone(&self, key: &HostKey, error: &Error) -> Slot {
        if self.named.entry(key.clone()).or_insert(()).is_fresh() {
            let held = keys::rate_limit(key);
            error!(host = %key, key = held, %error, "the key of a host holds something else: the host is not asked");
        }
        Slot::Later { wait: RETRY_DELAY, turn: UnixMs::now().plus(RETRY_DELAY) }
    }

    /// Lists a host at least until an instant.
    pub(crate) async fn list_until(&self, key: &HostKey, until: UnixMs) -> Result<()> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("ZREMRANGEBYSCORE").arg(keys::HOSTS).arg("-inf").arg(UnixMs::now().0).ignore();
        let mut add = redis::cmd("ZADD");
        add.arg(keys::HOSTS).arg("GT").arg(until.0).arg(key.as_str());
        pipeline.add_command(add.clone()).ignore();
        match pipeline.query_async(&mut self.redis.clone()).await.map_err(failed) {
            Err(error) if error.kind == ErrorKind::Full => {
                full::anyway(&self.redis, &add).await.map_err(failed)
            }
            written => written,
        }
    }

    async fn note(&self, key: &HostKey) -> Result<()> {
        if self.noted.contains_key(key) {
            return Ok(());
        }
        self.list_until(key, UnixMs::now().plus(LISTED_TTL)).await?;
        self.noted.insert(key.clone(), ());
        Ok(())
    }
}

#[async_trait]
impl Hosts for RedisHosts {
    async fn reserve(&self, asks: &[HostSlotRequest]) -> Result<Vec<Slot>> {
        let parts = parts(&self.redis, asks, |ask| &ask.key);
        let answers = try_join_all(parts.into_iter().map(|part| self.reserve_of(part, asks))).await?;
        let mut slots = vec![None; asks.len()];
        for (at, slot) in answers.into_iter().flatten() {
            slots[at] = Some(slot);
        }
        slots.into_iter().collect::<Option<_>>().ok_or_else(|| corrupt("reserve"))
    }

    async fn stay(&self, visits: &[InFlightRequest], lapse: Duration) -> Result<()> {
        let tell = |call: &mut ScriptInvocation<'_>, place: usize| {
            call.arg(token(visits[place].token)).arg(lapse.as_micros() as u64);
        };
        let parts = parts(&self.redis, visits, |visit| &visit.key);
        all_done(parts.into_iter().map(|part| call(&self.redis, &self.scripts.in_flight, part, tell))).await
    }

    async fn leave(&self, all: &[Ended]) -> Result<()> {
        let tell = |call: &mut ScriptInvocation<'_>, place: usize| {
            let how = if all[place].is_welcome { ended::WELCOME } else { ended::LEFT };
            call.arg(token(all[place].visit.token)).arg(how);
        };
        let parts = parts(&self.redis, all, |ended| &ended.visit.key);
        all_done(parts.into_iter().map(|part| call(&self.redis, &self.scripts.in_flight, part, tell))).await
    }

    async fn sent_late(&self, sent: &[SentLate]) -> Result<()> {
        let tell = |call: &mut ScriptInvocation<'_>, place: usize| {
            call.arg(sent[place].next_after.as_micros() as u64);
        };
        let parts = parts(&self.redis, sent, |sent| &sent.key);
        all_done(parts.into_iter().map(|part| call(&self.redis, &self.scripts.late, part, tell))).await
    }

    async fn push_back(&self, key: &HostKey, refusal: &BackoffRequest) -> Result<UnixMs> {
        if !self.told_from.is_zero() {
            self.list_for_news(key).await?;
        }
        let crawl = refusal.crawl.as_ref().map(|crawl| format!("{} {}", crawl.id, crawl.spider));
        let mut call = self.scripts.push.key(keys::rate_limit(key));
        let BackoffTerms { asked, base, jitter, most } = refusal.terms;
        let ask = json!({
            "asked": asked.map_or(0, |asked| asked.as_micros() as u64),
            "first": base.as_micros() as u64,
            "jitter": jitter,
            "most": most.as_micros() as u64,
            "status": refusal.status,
            "announced_from": self.told_from.as_micros() as u64,
            "crawl": crawl.unwrap_or_default(),
        });
        call.arg(ask.to_string());
        let wait: u64 = self.redis.run(&call).await?;
        let until = UnixMs::now().plus(Duration::from_micros(wait));
        self.list_until(key, until.plus(FORGIVEN_AFTER)).await?;
        Ok(until)
    }

    async fn robots(&self, key: &RobotsKey, lease: Duration) -> Result<RobotsEntry> {
        let key = keys::robots(key);
        if let Some(kept) = self.redis.value(&key, crate::redis::hosts::robots::MAX_STORED).await? {
            return crate::redis::hosts::robots::decode(kept);
        }
        let lease = lease.as_millis() as u64;
        let mut take = redis::cmd("SET");
        take.arg(&key).arg(crate::redis::hosts::robots::AWAITED).arg("NX").arg("PX").arg(lease);
        let is_mine: Option<String> = full::anyway(&self.redis, &take).await.map_err(failed)?;
        Ok(if is_mine.is_some() { RobotsEntry::Yours } else { RobotsEntry::Awaited })
    }

    async fn keep_robots(&self, key: &RobotsKey, file: &RobotsFile, ttl: Duration) -> Result<()> {
        let (name, value) = (keys::robots(key), crate::redis::hosts::robots::encode(file)?);
        let mut set = redis::cmd("SET");
        set.arg(&name).arg(&value).arg("PX").arg(ttl.as_millis() as u64);
        match self.redis.query(&set).await {
            Ok(()) => self.robots.spend(&self.redis, name, value.len(), ttl).await.map_err(failed),
            // It is fetched again when it is needed.
            Err(error) if error.kind == ErrorKind::Full => self.give_up_robots(key).await,
            Err(error) => Err(error),
        }
    }

    async fn give_up_robots(&self, key: &RobotsKey) -> Result<()> {
        let key = keys::robots(key);
        let kept = self.redis.value(&key, crate::redis::hosts::robots::MAX_STORED).await?;
        // Keep a file that another worker has fetched meanwhile.
        if kept.is_none_or(|kept| kept != crate::redis::hosts::robots::AWAITED.as_bytes()) {
            return Ok(());
        }
        self.redis.query(redis::cmd("DEL").arg(&key)).await
    }
}

/// Awaits calls that only change something. All of them are made; returns the first error.
async fn all_done<'a>(
    calls: impl Iterator<Item = impl Future<Output = Vec<(Part<'a>, Result<()>)>>>,
) -> Result<()> {
    join_all(calls).await.into_iter().flatten().try_for_each(|(_, done)| done)
}

/// Returns a token in the form that redis-cli shows.
fn token(token: u64) -> String {
    format!("{token:x}")
}

fn standing(standing: Standing) -> i64 {
    match standing {
        Standing::New => slot::NONE,
        Standing::Waitlisted(turn) => turn.0 as i64,
        Standing::Aside => slot::ASIDE,
    }
}

/// Parses the slots of an answer: three numbers each.
fn read_slots(answer: &[i64]) -> Result<Vec<Slot>> {
    let (numbers, rest) = answer.as_chunks();
    let slots = numbers.iter().map(|&[kind, wait, at]| read_slot(kind, wait, at)).collect::<Option<_>>();
    slots.filter(|_| rest.is_empty()).ok_or_else(|| corrupt("reserve"))
}

fn read_slot(kind: i64, wait: i64, at: i64) -> Option<Slot> {
    let (wait, at) = (Duration::from_micros(wait.try_into().ok()?), UnixMs(at.try_into().ok()?));
    Some(match kind {
        slot::AT_ONCE => Slot::Now,
        slot::RESERVED => Slot::Reserved { wait, at },
        slot::LATER => Slot::Later { wait, turn: at },
        slot::TOO_LATE => Slot::TooLate,
        slot::BLOCKED => Slot::Blocked,
        _ => return None,
    })
}

//! Heartbeats: `workers:<id>`, and the list of workers.

pub(crate) mod logs;
pub(crate) mod readers;

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use trawl_common::names::WorkerId;
use trawl_common::ports::{BeatReply, Heartbeat, Latency, Result, Vanished, WorkerState};
use trawl_common::time::UnixMs;
use trawl_engine::Heartbeats;

use crate::redis::server::schema;
use crate::redis::{RedisRecords, failed, keys};

/// The field that asks a worker to end (`workers/drain.lua`).
const DRAIN: &str = "drain";

/// Time without a heartbeat after which a worker is no longer listed.
const GONE_AFTER: Duration = Duration::from_secs(60);

#[async_trait]
impl Heartbeats for RedisRecords {
    async fn beat(&self, beat: &Heartbeat, ttl: Duration) -> Result<BeatReply> {
        let key = keys::worker(&beat.worker);
        let now = UnixMs::now();
        let mut says = redis::cmd("HSET");
        says.arg(&key)
            .arg("version")
            .arg(&*beat.version)
            .arg("in_flight")
            .arg(beat.in_flight)
            .arg("pages_per_second")
            .arg(format!("{:.1}", beat.pages_per_second))
            .arg("latency_ms")
            .arg(latency_text(beat.latency))
            .arg("health")
            .arg(beat.trouble.as_deref().unwrap_or(WorkerState::WELL))
            .arg("seen")
            .arg(now.to_string());
        for (name, value) in [
            ("lacks", serde_json::to_string(&beat.lacks)),
            ("troubles", serde_json::to_string(&beat.troubles)),
            ("running", serde_json::to_string(&beat.running)),
            ("programs", serde_json::to_string(&beat.programs)),
            ("outdated", serde_json::to_string(&beat.outdated)),
            ("behind", serde_json::to_string(&beat.behind)),
            ("browsers", serde_json::to_string(&beat.browsers)),
        ] {
            says.arg(name).arg(value.unwrap_or_default());
        }
        let () = self.write(&says).await?;
        let () = self.redis.query(redis::cmd("PEXPIRE").arg(&key).arg(ttl.as_millis() as u64)).await?;
        // A server that was emptied is marked again.
        let () =
            self.write(redis::cmd("SET").arg(keys::SCHEMA).arg(schema::OWN.to_string()).arg("NX")).await?;
        let () =
            self.write(redis::cmd("ZADD").arg(keys::WORKERS).arg(now.0).arg(beat.worker.as_str())).await?;
        let () = self
            .write(redis::cmd("HSET").arg(keys::BEATS).arg(beat.worker.as_str()).arg(beat.in_flight))
            .await?;
        self.check_clock().await?;
        let is_to_end: bool = self.redis.query(redis::cmd("HEXISTS").arg(&key).arg(DRAIN)).await?;
        Ok(if is_to_end { BeatReply::Drain } else { BeatReply::GoOn })
    }

    async fn leave(&self, worker: &WorkerId) -> Result<()> {
        let () = self.redis.query(redis::cmd("HDEL").arg(keys::BEATS).arg(worker.as_str())).await?;
        let () = self.redis.query(redis::cmd("ZREM").arg(keys::WORKERS).arg(worker.as_str())).await?;
        self.redis.query(redis::cmd("UNLINK").arg(keys::worker(worker))).await
    }
}

impl RedisRecords {
    pub(crate) async fn read_vanished(&self) -> Result<Vec<Vanished>> {
        let held: HashMap<String, u64> = self.redis.query(redis::cmd("HGETALL").arg(keys::BEATS)).await?;
        let mut vanished = Vec::new();
        for (name, in_flight) in held {
            let Ok(worker) = name.parse() else { continue };
            let lives: bool = self.redis.query(redis::cmd("EXISTS").arg(keys::worker(&worker))).await?;
            let seen: Option<u64> =
                self.redis.query(redis::cmd("ZSCORE").arg(keys::WORKERS).arg(worker.as_str())).await?;
            let seen = seen.filter(|_| !lives).map(UnixMs);
            vanished.extend(seen.map(|seen| Vanished { worker, seen, in_flight }));
        }
        vanished.sort_by_key(|vanished| std::cmp::Reverse(vanished.seen));
        Ok(vanished)
    }

    /// Forgets workers without a heartbeat since an instant.
    pub(crate) async fn forget_workers(&self, since: UnixMs) -> Result<()> {
        let mut list = redis::cmd("ZRANGEBYSCORE");
        list.arg(keys::WORKERS).arg("-inf").arg(since.0);
        let gone: Vec<String> = self.redis.query(&list).await?;
        if gone.is_empty() {
            return Ok(());
        }
        let () = self.redis.query(redis::cmd("HDEL").arg(keys::BEATS).arg(&gone)).await?;
        self.redis.query(redis::cmd("ZREM").arg(keys::WORKERS).arg(&gone)).await
    }

    pub(crate) async fn ask_to_end(&self, worker: &WorkerId) -> Result<bool> {
        self.redis.run(&self.scripts.drain.key(keys::worker(worker))).await
    }

    pub(crate) async fn read_workers(&self) -> Result<Vec<WorkerState>> {
        let since = UnixMs::now().0.saturating_sub(GONE_AFTER.as_millis() as u64);
        let mut list = redis::cmd("ZRANGEBYSCORE");
        list.arg(keys::WORKERS).arg(since).arg("+inf");
        let ids: Vec<String> = self.redis.query(&list).await?;
        let ids: Vec<WorkerId> = ids.into_iter().filter_map(|id| id.parse().ok()).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = redis::pipe();
        for worker in &ids {
            pipeline.cmd("HGETALL").arg(keys::worker(worker));
        }
        let all: Vec<HashMap<String, String>> =
            pipeline.query_async(&mut self.redis.clone()).await.map_err(failed)?;
        Ok(ids.into_iter().zip(all).filter_map(|(worker, fields)| state(worker, &fields)).collect())
    }
}

/// Returns the state that a worker's last heartbeat says; `None` if it has ended meanwhile, and has no version.
fn state(worker: WorkerId, fields: &HashMap<String, String>) -> Option<WorkerState> {
    let text = |name: &str| fields.get(name).map_or("", String::as_str);
    Some(WorkerState {
        worker,
        version: fields.get("version")?.clone(),
        draining: fields.contains_key(DRAIN),
        in_flight: text("in_flight").parse().unwrap_or_default(),
        pages_per_second: text("pages_per_second").parse().unwrap_or_default(),
        latency: latency_of(text("latency_ms")),
        health: text("health").to_owned(),
        // Fields that an older program does not send are empty.
        lacks: serde_json::from_str(text("lacks")).unwrap_or_default(),
        troubles: serde_json::from_str(text("troubles")).unwrap_or_default(),
        running: serde_json::from_str(text("running")).unwrap_or_default(),
        programs: serde_json::from_str(text("programs")).unwrap_or_default(),
        outdated: serde_json::from_str(text("outdated")).unwrap_or_default(),
        behind: serde_json::from_str(text("behind")).unwrap_or_default(),
        browsers: serde_json::from_str(text("browsers")).unwrap_or_default(),
    })
}

/// Returns `120 480`: the median and the 95th percentile; `-` if there were no requests.
fn latency_text(latency: Option<Latency>) -> String {
    latency.map_or("-".to_owned(), |Latency { p50_ms, p95_ms }| format!("{p50_ms} {p95_ms}"))
}

fn latency_of(text: &str) -> Option<Latency> {
    let (p50, p95) = text.split_once(' ')?;
    Some(Latency { p50_ms: p50.parse().ok()?, p95_ms: p95.parse().ok()? })
}

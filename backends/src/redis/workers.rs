//! Signs of life: `workers:<id>`, and the list of them.

use std::collections::HashMap;
use std::time::Duration;

use trawl_common::names::WorkerId;
use trawl_common::ports::{BeatReply, Heartbeat, Latency, Result, WorkerState};
use trawl_common::time::UnixMs;

use super::schema;
use super::{RedisRecords, keys};

/// The field that says that a worker is to end (`scripts/drain.lua`).
const DRAIN: &str = "drain";

/// Who has said nothing for so long is not listed.
const GONE_AFTER: Duration = Duration::from_secs(60);

impl RedisRecords {
    pub(super) async fn write_beat(&self, beat: &Heartbeat, ttl: Duration) -> Result<BeatReply> {
        let key = keys::worker(&beat.worker);
        let now = UnixMs::now();
        let mut says = redis::cmd("HSET");
        says.arg(&key)
            .arg("version")
            .arg(beat.version)
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
        let () = self.write(&says).await?;
        let () = self.redis.query(redis::cmd("PEXPIRE").arg(&key).arg(ttl.as_millis() as u64)).await?;
        // A server that was emptied is marked again.
        let () =
            self.write(redis::cmd("SET").arg(keys::SCHEMA).arg(schema::OWN.to_string()).arg("NX")).await?;
        let () =
            self.write(redis::cmd("ZADD").arg(keys::WORKERS).arg(now.0).arg(beat.worker.as_str())).await?;
        self.check_clock().await?;
        let is_to_end: bool = self.redis.query(redis::cmd("HEXISTS").arg(&key).arg(DRAIN)).await?;
        Ok(if is_to_end { BeatReply::Drain } else { BeatReply::GoOn })
    }

    pub(super) async fn ask_to_end(&self, worker: &WorkerId) -> Result<bool> {
        self.redis.run(&self.scripts.drain.key(keys::worker(worker))).await
    }

    pub(super) async fn read_workers(&self) -> Result<Vec<WorkerState>> {
        let since = UnixMs::now().0.saturating_sub(GONE_AFTER.as_millis() as u64);
        let mut list = redis::cmd("ZRANGEBYSCORE");
        list.arg(keys::WORKERS).arg(since).arg("+inf");
        let ids: Vec<String> = self.redis.query(&list).await?;
        let mut workers = Vec::with_capacity(ids.len());
        for worker in ids.into_iter().filter_map(|id| id.parse().ok()) {
            let fields: HashMap<String, String> =
                self.redis.query(redis::cmd("HGETALL").arg(keys::worker(&worker))).await?;
            // Without one it has ended meanwhile.
            let Some(version) = fields.get("version").cloned() else { continue };
            let text = |name: &str| fields.get(name).map_or("", String::as_str);
            workers.push(WorkerState {
                worker,
                version,
                draining: fields.contains_key(DRAIN),
                in_flight: text("in_flight").parse().unwrap_or_default(),
                pages_per_second: text("pages_per_second").parse().unwrap_or_default(),
                latency: latency_of(text("latency_ms")),
                health: text("health").to_owned(),
            });
        }
        Ok(workers)
    }
}

/// `120 480`: the median, then what nineteen of twenty requests do not exceed; `-` if there were none.
fn latency_text(latency: Option<Latency>) -> String {
    latency.map_or("-".to_owned(), |Latency { p50_ms, p95_ms }| format!("{p50_ms} {p95_ms}"))
}

fn latency_of(text: &str) -> Option<Latency> {
    let (p50, p95) = text.split_once(' ')?;
    Some(Latency { p50_ms: p50.parse().ok()?, p95_ms: p95.parse().ok()? })
}

//! Checks of Redis before a fleet relies on it.

use std::time::Instant;

use redis::InfoDict;
use tracing::warn;
use trawl_common::clock_check;
use trawl_common::finding::Finding;
use trawl_common::settings;
use trawl_common::time::UnixMs;

use super::connect::{connect, eviction, eviction_in};
use super::schema::check_schema;
use crate::redis::{Link, failed};
use crate::versions::is_older;

const SUBJECT: &str = "redis";
/// The oldest version that trawl is tested with.
const OLDEST: [u32; 2] = [7, 0];
/// Percentage of `maxmemory` from which memory counts as nearly full.
const NEARLY_FULL: u64 = 90;

/// Connects to the server that holds the records, and returns what is to be said of it.
pub async fn examine(settings: &settings::Redis) -> Vec<Finding> {
    let link = match connect(settings).await {
        Ok(link) => link,
        Err(error) => return vec![Finding::error(SUBJECT, error)],
    };
    let asked = Instant::now();
    let info = match redis::cmd("INFO").query_async::<InfoDict>(&mut link.clone()).await {
        Ok(info) => info,
        Err(error) => return vec![Finding::error(SUBJECT, failed(error))],
    };
    let text = |key: &str| info.get::<String>(key).unwrap_or_default();
    let name = info.get::<String>("valkey_version").map(|version| format!("valkey {version}"));
    let name = name.unwrap_or_else(|| format!("redis {}", text("redis_version")));
    let took = asked.elapsed().as_secs_f64() * 1_000.0;
    let mut all =
        vec![Finding::ok(SUBJECT, format_args!("{name} at {} answers in {took:.1} ms", settings.url))];
    // Valkey calls itself the Redis that it is compatible with.
    if is_older(&text("redis_version"), OLDEST) {
        let what = format!("{name} is older than any that trawl is tested with");
        all.push(Finding::warning(SUBJECT, what).advise("update it to 7.0 or newer"));
    }
    all.extend(check_schema(&link).await.err().map(|error| Finding::error(SUBJECT, error)));
    all.extend(eviction_in(&info).map(|policy| evicting(&policy)));
    if text("aof_enabled") == "0" {
        let what = "a crash takes what redis has not saved: RabbitMQ has the orders and the URLs, but not what was done since";
        all.push(Finding::warning(SUBJECT, what).advise("run it with `--appendonly yes`"));
    }
    for key in ["aof_last_write_status", "rdb_last_bgsave_status"] {
        if !matches!(&*text(key), "ok" | "") {
            let what = format!("it cannot save its data ({key} is {}), and may refuse to write", text(key));
            all.push(Finding::error(SUBJECT, what).advise("look at its log, and at its disk"));
        }
    }
    let number = |key: &str| info.get::<u64>(key).unwrap_or_default();
    let (used, limit) = (number("used_memory"), number("maxmemory"));
    if limit > 0 && used >= limit / 100 * NEARLY_FULL {
        let what = format!("{} of its {} MB of memory are in use", used / 1_000_000, limit / 1_000_000);
        all.push(
            Finding::warning(SUBJECT, what).advise("raise `maxmemory`, or set `redis.dedup = \"packed\"`"),
        );
    }
    all.extend(clock_of(&link).await);
    all
}

/// Logs a warning if the server may evict records when its memory is full.
pub(crate) async fn warn_of_eviction(link: &Link) {
    if let Some(policy) = eviction(link).await {
        warn!("{}", evicting(&policy));
    }
}

/// Returns the finding that the server may evict records when its memory is full.
fn evicting(policy: &str) -> Finding {
    let what = format!("its policy is {policy}: it may evict records when its memory is full");
    let advice = "set `maxmemory-policy noeviction`";
    match policy.starts_with("allkeys") {
        true => Finding::error(SUBJECT, what).advise(advice),
        false => Finding::warning(SUBJECT, what).advise(advice),
    }
}

/// Compares the server's clock with this machine's.
async fn clock_of(link: &Link) -> Option<Finding> {
    let (seconds, micros): (u64, u64) = redis::cmd("TIME").query_async(&mut link.clone()).await.ok()?;
    let apart = clock_check::apart_from(UnixMs(seconds * 1_000 + micros / 1_000))?;
    Some(Finding::error("clock", apart))
}

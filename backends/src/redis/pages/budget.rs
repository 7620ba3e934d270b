//! A limit on the total size of all values of one kind, in a Redis that evicts none by itself.
//!
//! Each process reports the values that it has put once they come to a hundredth of the budget, and then removes
//! the excess, beginning with those that expire first. This way not each value costs a call. Values that a dying
//! process has not reported expire by themselves.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redis::{RedisResult, Script};

use crate::redis::Link;

/// Overhead of a value in bytes: both entries, as its key is also in the index.
const VALUE_OVERHEAD: usize = 250;

/// Maximum number of values reported or removed at a time.
const BATCH: usize = 500;

pub(crate) struct Budget {
    /// The index of the values, and their total size: both in one slot.
    index: &'static str,
    bytes: &'static str,
    most: u64,
    unreported: Mutex<Unreported>,
    script: Script,
}

#[derive(Default)]
struct Unreported {
    values: Vec<Put>,
    bytes: u64,
}

/// A value that was put.
struct Put {
    key: String,
    bytes: usize,
    until: Instant,
}

impl Budget {
    /// Creates a budget of `most` bytes for cached responses.
    pub(crate) fn for_responses(most: u64) -> Self {
        Self::new("{content}:lapsing", "{content}:lapsing:bytes", most)
    }

    /// Creates a budget of `most` bytes for robots.txt files.
    pub(crate) fn for_robots(most: u64) -> Self {
        Self::new("{robots}:lapsing", "{robots}:lapsing:bytes", most)
    }

    fn new(index: &'static str, bytes: &'static str, most: u64) -> Self {
        let script = Script::new(concat!("#!lua flags=allow-oom\n", include_str!("budget.lua")));
        Self { index, bytes, most, unreported: Mutex::default(), script }
    }

    /// Notes a value that was put with a time to live, and removes the excess.
    pub(crate) async fn spend(
        &self,
        redis: &Link,
        key: String,
        value: usize,
        ttl: Duration,
    ) -> RedisResult<()> {
        let Some(values) = self.note(key, value, ttl) else { return Ok(()) };
        let mut call = self.script.key(self.index);
        call.key(self.bytes).arg(self.most);
        for Put { key, bytes, until } in values {
            let left = until.saturating_duration_since(Instant::now());
            call.arg(bytes).arg(left.as_millis() as u64).arg(key);
        }
        let gone: Vec<String> = call.invoke_async(&mut redis.clone()).await?;
        for part in gone.chunks(BATCH) {
            let mut pipeline = redis::pipe();
            part.iter().for_each(|key| {
                pipeline.cmd("UNLINK").arg(key).ignore();
            });
            let () = pipeline.query_async(&mut redis.clone()).await?;
        }
        Ok(())
    }

    /// Returns the values to report now, if there are enough.
    fn note(&self, key: String, value: usize, ttl: Duration) -> Option<Vec<Put>> {
        let bytes = value + 2 * key.len() + VALUE_OVERHEAD;
        let mut unreported = self.unreported.lock();
        unreported.values.push(Put { key, bytes, until: Instant::now() + ttl });
        unreported.bytes += bytes as u64;
        let is_enough = unreported.bytes >= self.most / 100 || unreported.values.len() >= BATCH;
        is_enough.then(|| std::mem::take(&mut *unreported).values)
    }
}

//! A bound on what all cached responses take together, in a Redis that throws none away by itself.
//!
//! Each process tells the server of what it has put when that comes to a hundredth of the budget, and takes away the oldest
//! responses that are too many: that is no call for each response. What a process that dies has not told of lapses by its time.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::{RedisResult, Script};

use super::Link;

/// The index of responses, and how many bytes they take: of one slot.
const INDEX: &str = "{content}:index";
const BYTES: &str = "{content}:bytes";

/// What a response takes beside its URL and its value: its key, and its entry in the index.
const BESIDE: usize = 250;

/// So many responses are told of at a time at most.
const TOLD: usize = 500;

pub(super) struct Budget {
    most: u64,
    longest: Duration,
    untold: Mutex<Untold>,
    script: Script,
}

#[derive(Default)]
struct Untold {
    responses: Vec<(usize, String)>,
    bytes: u64,
}

impl Budget {
    /// Of so many bytes, for responses that are kept no longer than `longest`.
    pub(super) fn new(most: u64, longest: Duration) -> Self {
        let script = Script::new(concat!("#!lua flags=allow-oom\n", include_str!("scripts/budget.lua")));
        Self { most, longest, untold: Mutex::default(), script }
    }

    /// Notes what was put. Returns the keys that are to go.
    pub(super) async fn spend(&self, redis: &Link, url: &str, value: usize) -> RedisResult<Vec<String>> {
        let Some(responses) = self.note(url, value) else { return Ok(Vec::new()) };
        let mut call = self.script.key(INDEX);
        call.key(BYTES).arg(self.most).arg(self.longest.as_millis() as u64);
        for (bytes, url) in responses {
            call.arg(bytes).arg(url);
        }
        call.invoke_async(&mut redis.clone()).await
    }

    /// What is to be told now, if it is enough.
    fn note(&self, url: &str, value: usize) -> Option<Vec<(usize, String)>> {
        let bytes = value + 2 * url.len() + BESIDE;
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        untold.responses.push((bytes, url.to_owned()));
        untold.bytes += bytes as u64;
        let is_enough = untold.bytes >= self.most / 100 || untold.responses.len() >= TOLD;
        is_enough.then(|| std::mem::take(&mut *untold).responses)
    }
}

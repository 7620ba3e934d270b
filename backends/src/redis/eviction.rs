//! A Redis that may throw records away: nothing more is taken in, until somebody has it keep them.
//!
//! What was thrown away nobody knows: a message whose record is gone is one of a URL that has ended. So no crawl that was open then ends by
//! itself (`is_evicted` in `scripts/record.lua`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tracing::warn;
use trawl_common::ports::{Error, ErrorKind, Result};

use super::RedisRecords;
use super::connect::eviction;

/// How often each process looks at the policy, which may be changed while all runs.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// What a process knows of it.
#[derive(Default)]
pub(super) struct Eviction {
    looked: Mutex<Option<Instant>>,
    may_evict: AtomicBool,
}

impl RedisRecords {
    /// Looks by which policy the server frees memory, if that was some seconds ago.
    pub(super) async fn look_at_eviction(&self) {
        let mut looked = self.eviction.looked.lock().await;
        if looked.is_some_and(|last| last.elapsed() < LOOK_EVERY) {
            return;
        }
        *looked = Some(Instant::now());
        let policy = eviction(&self.redis).await.filter(|policy| policy.starts_with("allkeys"));
        let was = self.eviction.may_evict.swap(policy.is_some(), Ordering::Relaxed);
        if let (Some(policy), false) = (policy, was) {
            warn!(policy, "redis may throw records away: nothing more is taken in. {WAY_OUT}");
        }
    }

    /// Fails with `Full` while the server may throw away what is taken in.
    pub(super) fn check_eviction(&self) -> Result<()> {
        match self.eviction.may_evict.load(Ordering::Relaxed) {
            false => Ok(()),
            true => {
                let text = format_args!(
                    "redis may throw away records when its memory is full, so that no new URLs are taken in. {WAY_OUT}"
                );
                Err(Error::new(ErrorKind::Full, text))
            }
        }
    }
}

/// For people.
const WAY_OUT: &str = "`redis-cli config set maxmemory-policy noeviction` has it keep them";

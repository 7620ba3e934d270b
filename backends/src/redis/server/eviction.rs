//! A Redis that may evict records: nothing more is admitted until the policy is changed.
//!
//! Evicted records leave no trace: a message without a record looks like one of a URL that has ended. So no crawl
//! that was open at the time ends by itself (`is_evicted` in `scripts/record.lua`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tracing::warn;
use trawl_common::ports::{Error, ErrorKind, Result};

use crate::redis::RedisRecords;
use crate::redis::server::connect::eviction;

/// The interval at which each process checks the policy, which may be changed at run time.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The state of a process's checks.
#[derive(Default)]
pub(crate) struct Eviction {
    looked: Mutex<Option<Instant>>,
    may_evict: AtomicBool,
}

impl RedisRecords {
    /// Checks the eviction policy of the server, if the last check was some seconds ago.
    pub(crate) async fn read_evictions(&self) {
        let mut looked = self.eviction.looked.lock().await;
        if looked.is_some_and(|last| last.elapsed() < CHECK_INTERVAL) {
            return;
        }
        *looked = Some(Instant::now());
        let policy = eviction(&self.redis).await.filter(|policy| policy.starts_with("allkeys"));
        let was = self.eviction.may_evict.swap(policy.is_some(), Ordering::Relaxed);
        if let (Some(policy), false) = (policy, was) {
            warn!(policy, "redis may throw records away: nothing more is taken in. {WAY_OUT}");
        }
    }

    /// Fails with `Full` while the server may evict admitted records.
    pub(crate) fn check_eviction(&self) -> Result<()> {
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

/// The advice for people.
const WAY_OUT: &str = "`redis-cli config set maxmemory-policy noeviction` has it keep them";

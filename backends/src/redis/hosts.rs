//! Host schedules, shared by the fleet: `ratelimit:<host>`.

use std::time::Duration;

use async_trait::async_trait;
use futures::future::try_join_all;
use redis::Script;
use trawl_common::gcra::{HORIZON, Slot};
use trawl_common::ports::{Ask, Hosts, Result};
use trawl_common::time::UnixMs;

use super::{Link, failed, keys, scripts};

/// Host schedules on Redis.
pub struct RedisHosts {
    redis: Link,
    reserve: Script,
}

impl RedisHosts {
    /// On this connection.
    pub fn new(redis: Link) -> Self {
        Self { redis, reserve: scripts::reserve() }
    }

    async fn reserve_one(&self, ask: &Ask) -> Result<Slot> {
        let held = ask.held.map_or(-1, |slot| slot.0 as i64);
        let mut redis = self.redis.clone();
        let (granted, wait, at): (u8, u64, u64) = self
            .reserve
            .key(keys::rate_limit(&ask.host))
            .arg(ask.pace.interval.as_micros() as u64)
            .arg(ask.pace.burst.max(1))
            .arg(HORIZON.as_micros() as u64)
            .arg(held)
            .invoke_async(&mut redis)
            .await
            .map_err(failed)?;
        let wait = Duration::from_micros(wait);
        Ok(if granted == 1 { Slot::Granted { wait, at: UnixMs(at) } } else { Slot::Later { wait } })
    }
}

#[async_trait]
impl Hosts for RedisHosts {
    /// Each host may live in another slot of a cluster, so each ask is a call; the connection
    /// pipelines them, and keeps their order.
    async fn reserve(&self, asks: &[Ask]) -> Result<Vec<Slot>> {
        try_join_all(asks.iter().map(|ask| self.reserve_one(ask))).await
    }
}

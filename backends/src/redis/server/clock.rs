//! The fleet's clock, which is that of Redis.

use std::time::Instant;

use trawl_common::clock::{self, ClockReading};
use trawl_common::clock_check;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::time::UnixMs;

use crate::redis::RedisRecords;
use crate::redis::keys;

impl RedisRecords {
    /// Measures Redis' clock, which this process uses from now on.
    pub async fn follow_clock(&self) -> Result<()> {
        self.read_evictions().await;
        let asked = Instant::now();
        let micros = self.time().await?;
        clock::follow(ClockReading { micros, asked, answered: Instant::now() });
        Ok(())
    }

    /// Measures Redis' clock. Fails with `Refused` if this machine's own differs much.
    pub(crate) async fn check_clock(&self) -> Result<()> {
        self.follow_clock().await?;
        match clock_check::disagreement() {
            Some(apart) => Err(Error::new(ErrorKind::Refused, apart)),
            None => Ok(()),
        }
    }

    pub(crate) async fn now(&self) -> Result<UnixMs> {
        Ok(UnixMs(self.time().await? / 1_000))
    }

    /// Reads the clock; in a cluster always that of the same shard.
    async fn time(&self) -> Result<u64> {
        self.redis.run(&self.scripts.time.key(keys::WORKERS)).await
    }
}

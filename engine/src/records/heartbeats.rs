//! Heartbeats of workers.

use std::time::Duration;

use async_trait::async_trait;
use trawl_common::names::WorkerId;
use trawl_common::ports::{BeatReply, Heartbeat, Result};

/// Shows which workers run. Called by each worker every few seconds, and when it ends (`frontier.rs`).
#[async_trait]
pub trait Heartbeats: Send + Sync {
    /// Publishes for `ttl` that this worker is running, and returns the commands for it. Nothing else depends on it.
    ///
    /// Fails with `Refused`, after doing so, if this machine's clock is far from the frontier's.
    async fn beat(&self, beat: &Heartbeat, ttl: Duration) -> Result<BeatReply>;

    /// Records that this worker ends, and has released everything that it held.
    async fn leave(&self, worker: &WorkerId) -> Result<()>;
}

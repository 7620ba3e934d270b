//! Making operators' commands outlive the server that took them.

use std::time::Duration;

use redis::{Cmd, InfoDict};
use tracing::warn;

use crate::redis::Link;

/// Maximum time that a command waits for a disk, and for replicas.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The remedy if the server loses an order that is in the log.
pub(crate) const IN_LOG: &str = "the stream control has it";

impl Link {
    /// Waits until the writes of this connection to the server that has `key`, and all before them, are on its disk
    /// and with its replicas, as far as that server can tell: for its disk from Redis 7.2 on, if it has an append-only
    /// file. A connection that waits carries no other commands, so use a separate connection.
    ///
    /// Never fails. If the server does not confirm in time, it warns, and says with it what `otherwise` holds.
    pub(crate) async fn until_durable(&self, key: &str, otherwise: &str) {
        let limit = TIMEOUT.as_millis() as u64;
        let synced = redis::cmd("WAITAOF").arg(1).arg(0).arg(limit).to_owned();
        // A server that does not know the command, or has no such file, returns an error.
        let synced: Option<(u64, u64)> = self.query_at(key, &synced).await.ok();
        let is_synced = synced.is_none_or(|(local, _)| local > 0);
        let replicas = self.replicas_of(key).await;
        let is_copied = match replicas {
            0 => true,
            _ => {
                let copied = redis::cmd("WAIT").arg(replicas).arg(limit).to_owned();
                self.query_at::<u64>(key, &copied).await.is_ok_and(|copies| copies >= replicas)
            }
        };
        if !(is_synced && is_copied) {
            let limit = TIMEOUT.as_secs();
            warn!(
                is_synced,
                is_copied,
                "redis did not confirm within {limit} s that the order is on its disk and with its replicas; {otherwise}"
            );
        }
    }

    /// Returns the number of replicas that the server that has `key` knows.
    async fn replicas_of(&self, key: &str) -> u64 {
        let info: Cmd = redis::cmd("INFO").arg("replication").to_owned();
        let info = self.query_at::<InfoDict>(key, &info).await.ok();
        info.and_then(|info| info.get("connected_slaves")).unwrap_or_default()
    }
}

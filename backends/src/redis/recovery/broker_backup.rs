//! The backup in the broker, from which a store restores lost data.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Mutex;
use tracing::{debug, warn};
use trawl_common::ports::Result;

use crate::control_log::{Counts, Logged};
use crate::rabbitmq::ControlLog;
use crate::redis::RedisHosts;

/// The log of operators' commands, and the host schedules that learn the blocked hosts from it.
pub(crate) struct BrokerBackup {
    pub(crate) log: Arc<ControlLog>,
    pub(crate) hosts: Arc<RedisHosts>,
    /// Held while the log is read, by one reader at a time.
    pub(crate) reading: Mutex<()>,
    /// The numbers of done pages that were noted last.
    counted: Mutex<Counts>,
}

impl BrokerBackup {
    pub(crate) fn new(log: Arc<ControlLog>, hosts: Arc<RedisHosts>) -> Self {
        Self { log, hosts, reading: Mutex::default(), counted: Mutex::default() }
    }

    /// Reads the commands for crawls and hosts, and the numbers of pages that crawls had done.
    pub(crate) async fn read(&self) -> Result<Logged> {
        let mut logged = self.log.read().await?;
        if logged.is_limited() {
            match self.log.read_counts().await {
                // It may not be declared here, and does not exist: those limits count from zero.
                Err(error) if !error.is_temporary() => {
                    warn!(%error, "how many pages crawls have done is not known")
                }
                counts => logged.count(&counts?),
            }
        }
        Ok(logged)
    }

    /// Notes the numbers of pages that crawls have done, unless they were noted last. If RabbitMQ is unavailable,
    /// they are noted later.
    pub(crate) async fn count(&self, done: BTreeMap<String, u64>) {
        let counts = Counts { done };
        let mut counted = self.counted.lock().await;
        if counts.done.is_empty() || *counted == counts {
            return;
        }
        match self.log.counts.append([&counts]).await {
            Ok(()) => *counted = counts,
            Err(error) => debug!(%error, "how many pages crawls have done is noted later"),
        }
    }
}

//! Where a store learns what it has forgotten.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Mutex;
use tracing::{debug, warn};
use trawl_common::ports::Result;

use super::RedisHosts;
use crate::control_log::{Counts, Logged};
use crate::rabbitmq::ControlLog;

/// Whether a crawl that the store does not know was ever opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    /// It was not: its id was made just now.
    None,
    /// It may have been: the log tells.
    Possible,
    /// It was: who opens it had it open.
    Certain,
}

/// The log of what people ordered, and the host schedules that learn from it which hosts are blocked.
pub(super) struct SecondHome {
    pub(super) log: Arc<ControlLog>,
    pub(super) hosts: Arc<RedisHosts>,
    /// Held by whoever reads it: one at a time.
    pub(super) reading: Mutex<()>,
    /// What was noted last of how many pages crawls have done.
    counted: Mutex<Counts>,
}

impl SecondHome {
    pub(super) fn new(log: Arc<ControlLog>, hosts: Arc<RedisHosts>) -> Self {
        Self { log, hosts, reading: Mutex::default(), counted: Mutex::default() }
    }

    /// What was ordered of crawls and hosts, and how many pages crawls had done.
    pub(super) async fn read(&self) -> Result<Logged> {
        let mut logged = self.log.read().await?;
        if logged.is_limited() {
            match self.log.read_counts().await {
                // It may not be declared here, and is not there: those limits count anew.
                Err(error) if !error.is_temporary() => {
                    warn!(%error, "how many pages crawls have done is not known")
                }
                counts => logged.count(&counts?),
            }
        }
        Ok(logged)
    }

    /// Notes how many pages crawls have done, unless that is what was noted last. A RabbitMQ that is away learns it later.
    pub(super) async fn count(&self, done: BTreeMap<String, u64>) {
        let counts = Counts { done };
        let mut counted = self.counted.lock().await;
        if counts.done.is_empty() || *counted == counts {
            return;
        }
        match self.log.append_counts(&counts).await {
            Ok(()) => *counted = counts,
            Err(error) => debug!(%error, "how many pages crawls have done is noted later"),
        }
    }
}

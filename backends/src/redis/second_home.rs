//! Where a store learns what it has forgotten.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::RedisHosts;
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
}

impl SecondHome {
    pub(super) fn new(log: Arc<ControlLog>, hosts: Arc<RedisHosts>) -> Self {
        Self { log, hosts, reading: Mutex::default() }
    }
}

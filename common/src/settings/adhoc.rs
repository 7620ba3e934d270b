//! `[adhoc]`: URLs that other programs publish.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration;
use crate::names::SpiderName;

/// `[adhoc]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adhoc {
    /// Time after which a URL that is requested again is fetched again, counted from its last request or fetch;
    /// sooner it is a repeat.
    #[serde(with = "duration")]
    pub again: Duration,
    /// The spiders that a stranger's message may name. Without `rabbitmq.key` it may name any, because then no
    /// message can be trusted more than another.
    #[serde(default)]
    pub spiders: Vec<SpiderName>,
}

impl Default for Adhoc {
    /// Sets `again` to the time that a response stays in the cache.
    fn default() -> Self {
        Self { again: Duration::from_secs(60), spiders: Vec::new() }
    }
}

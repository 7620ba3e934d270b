//! `[keep]`: what is kept of crawls that are over.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration::{self, minutes};

/// `[keep]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keep {
    /// How many crawls that are over a fleet keeps with their counters and dead letters, and how many jobs: the last ones, and
    /// all that ended within a day.
    pub crawls: usize,
    /// How long the dead letters of a crawl that is over are kept in a fleet.
    #[serde(with = "duration")]
    pub failed: Duration,
}

impl Default for Keep {
    fn default() -> Self {
        Self { crawls: 100, failed: minutes(30 * 24 * 60) }
    }
}

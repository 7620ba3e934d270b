//! `[keep]`: retention of finished crawls.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration::{self, minutes};

/// `[keep]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keep {
    /// Number of finished crawls that a fleet keeps with their counters and dead letters, and of finished jobs:
    /// the last ones, and all that ended within a day.
    pub crawls: usize,
    /// Time that a fleet keeps the dead letters of a finished crawl.
    #[serde(with = "duration")]
    pub failed: Duration,
}

impl Default for Keep {
    fn default() -> Self {
        Self { crawls: 100, failed: minutes(30 * 24 * 60) }
    }
}

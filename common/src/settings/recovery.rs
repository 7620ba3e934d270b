//! `[recovery]`: when something counts as lost.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration::{self, minutes};

/// `[recovery]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recovery {
    /// Time without a sign of life after which something counts as lost: a message, or a producer that reads
    /// sources. For a worker that holds a URL it is a quarter of that. All programs of a fleet need the same
    /// value.
    #[serde(with = "duration")]
    pub lost_after: Duration,
}

impl Default for Recovery {
    fn default() -> Self {
        Self { lost_after: minutes(1) }
    }
}

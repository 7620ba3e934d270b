//! `[jobs]`: how submitted crawls are run.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// `[jobs]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jobs {
    /// Number of jobs that one worker feeds at once; with 0 it takes none.
    pub per_worker: u16,
    /// Number of jobs of one spider that run at once. All programs of a fleet need the same value.
    pub per_spider: NonZeroU32,
}

impl Default for Jobs {
    fn default() -> Self {
        Self { per_worker: 4, per_spider: NonZeroU32::MIN }
    }
}

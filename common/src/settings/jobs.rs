//! `[jobs]`: how crawls are run that were asked for.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// `[jobs]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jobs {
    /// How many jobs one worker feeds at once; with 0 it takes none.
    pub per_worker: u16,
    /// How many jobs of one spider run at once. All programs of a fleet need the same.
    pub per_spider: NonZeroU32,
}

impl Default for Jobs {
    fn default() -> Self {
        Self { per_worker: 4, per_spider: NonZeroU32::MIN }
    }
}

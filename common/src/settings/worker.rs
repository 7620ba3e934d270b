//! `[worker]`: a worker's own limits.

use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use super::bytes::exact_bytes;
use crate::duration;

/// `[worker]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worker {
    /// Pages fetched at once.
    pub concurrency: u16,
    /// Messages of each lane taken from the broker ahead of need.
    pub prefetch: u16,
    /// The memory for all pages that a worker holds: one half for bodies of more than 256 KiB, the other for the trees that are built of
    /// them.
    #[serde(serialize_with = "exact_bytes")]
    pub page_memory: ByteSize,
    /// How many tasks are done at once by the programs of spiders; 0 for a worker that takes no tasks.
    pub handlers: u16,
    /// How long a worker that is asked to stop may take to finish what it has begun.
    #[serde(with = "duration")]
    pub shutdown_timeout: Duration,
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            concurrency: 64,
            prefetch: 256,
            page_memory: ByteSize::mb(512),
            handlers: 4,
            shutdown_timeout: Duration::from_secs(25),
        }
    }
}

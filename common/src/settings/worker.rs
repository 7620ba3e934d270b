//! `[worker]`: limits of a worker.

use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use super::bytes::exact_bytes;
use crate::duration;

/// `[worker]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worker {
    /// Number of pages fetched at once.
    pub concurrency: u16,
    /// Number of messages of each lane taken from the broker in advance.
    pub prefetch: u16,
    /// The memory for all pages that a worker holds: half of it for bodies of more than 256 KiB, the other half
    /// for the trees built from them.
    #[serde(serialize_with = "exact_bytes")]
    pub page_memory: ByteSize,
    /// Number of tasks that the programs of spiders do at once; 0 for a worker that takes no tasks.
    pub handlers: u16,
    /// Time that a worker that is asked to stop may take to finish what it has begun.
    #[serde(with = "duration")]
    pub shutdown_timeout: Duration,
}

impl Worker {
    /// Returns the memory for all bodies, which is also that for all trees, in bytes.
    pub fn half_page_memory(&self) -> u64 {
        self.page_memory.as_u64() / 2
    }
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

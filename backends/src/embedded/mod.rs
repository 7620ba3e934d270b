//! The embedded engine: every port in this process, over one SQLite file, with no server at all.
//!
//! The transitions are those of the servers; lanes and parking are columns of the record. What makes it
//! small is that a record and its wake-up are one row: to admit a URL is to publish it, so there is no
//! outbox, nothing to confirm and nothing to reconcile.
//!
//! **What is durable.** Records, books, the set of URLs seen and the dead letters. A killed process loses
//! nothing that a call has returned for. A power cut may lose the last moments before it, and leaves the
//! file consistent as of the moment before those (`synchronous = NORMAL`).
//!
//! **What is not.** Who holds a record, heartbeats, leases, host schedules and cached responses live in
//! memory. They die with the process, and so they should: the file admits one process at a time, so
//! whoever opens it knows that every former holder is gone, and what was in hand is available again.

mod cache;
mod crawls;
mod error;
mod failures;
mod frontier;
mod hands;
mod hosts;
mod leases;
mod lines;
mod queue;
mod records;
mod schema;
mod seen;
mod store;
mod transitions;

use std::path::Path;
use std::sync::Arc;

use trawl_common::ports::{Cache, Frontier, Hosts, Queue, Result};

use self::cache::MemoryCache;
use self::frontier::EmbeddedFrontier;
use self::hosts::MemoryHosts;
use self::queue::EmbeddedQueue;
use self::store::Store;

/// The adapters of one embedded engine. The file is closed when the last of them is dropped.
pub struct Embedded {
    store: Arc<Store>,
    hosts: Arc<MemoryHosts>,
    cache: Arc<MemoryCache>,
}

impl Embedded {
    /// Opens the state file at `path`, or creates it.
    ///
    /// Fails with `Busy` while another process has it open, with `Refused` if it is not a state file of
    /// trawl or was written by a newer one, and with `Unavailable` if it cannot be read or written.
    pub fn open(path: &Path) -> Result<Self> {
        Store::start(schema::open(path)?).map(Self::over)
    }

    /// An engine that keeps nothing beyond its own life.
    pub fn in_memory() -> Result<Self> {
        Store::start(schema::in_memory()?).map(Self::over)
    }

    fn over(store: Store) -> Self {
        Self { store: Arc::new(store), hosts: Arc::default(), cache: Arc::default() }
    }

    /// The queue.
    pub fn queue(&self) -> Arc<dyn Queue> {
        Arc::new(EmbeddedQueue::new(self.store.clone()))
    }

    /// The frontier.
    pub fn frontier(&self) -> Arc<dyn Frontier> {
        Arc::new(EmbeddedFrontier::new(self.store.clone()))
    }

    /// The hosts' schedules.
    pub fn hosts(&self) -> Arc<dyn Hosts> {
        self.hosts.clone()
    }

    /// The response cache.
    pub fn cache(&self) -> Arc<dyn Cache> {
        self.cache.clone()
    }
}

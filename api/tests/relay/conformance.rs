//! The promises of an engine and of hosts, over the relay.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use trawl_backends::embedded::Embedded;
use trawl_common::frontier::Key;
use trawl_common::health::Health;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Access, CrawlSession, Engine, Join, Joined, Joining, Opening, Result};
use trawl_testkit::conformance::carrying::Carrier;
use trawl_testkit::conformance::hosts::{Frugal, HostPorts};

use crate::fixture::{Hand, Runner, Serving};
use crate::support;

/// Maximum number of workers of a test.
const WORKERS: usize = 12;

/// An engine whose workers are runners.
struct Relayed {
    engine: Arc<dyn Engine>,
    runners: Mutex<Vec<Runner>>,
}

impl Join for Relayed {
    fn join(&self, joining: Joining) -> Joined {
        let runner = self.runners.lock().pop().expect("a test has few workers");
        trawl_runner::ports(runner.link).engine.join(joining)
    }
}

#[async_trait]
impl Engine for Relayed {
    async fn open(&self, opening: Opening, health: Arc<Health>) -> Result<Box<dyn CrawlSession>> {
        self.engine.open(opening, health).await
    }

    async fn replay(&self, from: &CrawlRef, into: &CrawlRef, keys: &[Key]) -> Result<u64> {
        self.engine.replay(from, into, keys).await
    }
}

async fn carrier() -> (Serving, Carrier) {
    let serving = Serving::start().await;
    let mut runners = Vec::new();
    for number in 0..WORKERS {
        let name = format!("r{number}");
        runners.push(serving.runner(&name).await);
        serving.allow(&name, "books", Access::Assign).await;
    }
    let backend = &serving.backend;
    let engine = Relayed { engine: Arc::clone(&backend.engine), runners: Mutex::new(runners) };
    let carrier = Carrier {
        engine: Arc::new(engine),
        stats: Arc::clone(&backend.stats),
        control: Arc::clone(&backend.control),
        pages: Arc::clone(&backend.pages),
        health: Arc::default(),
        claims_ahead: false,
    };
    (serving, carrier)
}

/// The schedules of hosts as a runner sees them that has work which may lead to any.
async fn hosts() -> ((Serving, Hand), HostPorts) {
    let serving = Serving::start().await;
    let runner = serving.runner("r1").await;
    support::crawl(&serving.backend, "c1", "any", 1, Default::default()).await;
    let hand = runner.join();
    hand.claim(1).await;
    let ports = HostPorts {
        hosts: trawl_runner::ports(runner.link).hosts,
        control: Arc::clone(&serving.backend.hosts),
    };
    ((serving, hand), ports)
}

/// The budget is the store's: more calls than a runner may make fill it.
async fn frugal() -> ((), Frugal) {
    ((), Frugal { hosts: Embedded::in_memory().unwrap().hosts(), robots_bytes: 32 << 20 })
}

trawl_testkit::relayed_conformance!(carrier);
trawl_testkit::relayed_in_one_process_conformance!(carrier);
trawl_testkit::hosts_conformance!(hosts, frugal);

//! One suite per port, for every adapter: each promise of the port's documentation is a function here, and an adapter's
//! test file makes a test of each.
//!
//! ```ignore
//! async fn fixture() -> (TempDir, Arc<dyn Records>) { /* ... */ }
//! trawl_testkit::frontier_conformance!(fixture, brief);
//! ```
//!
//! A fixture returns a guard, which must live as long as the test, and the port. Frontiers, hosts and caches may be
//! shared by tests that run at once: every name is unique. A queue must be the test's own, and empty; so must a store
//! that is swept, as a sweep concerns all crawls there are.

pub mod cache;
pub mod carrying;
pub mod control;
mod engine;
mod fixture;
pub mod frontier;
pub mod hosts;
pub mod jobs;
pub mod logs;
pub mod pages;
pub mod projects;
pub mod queue;
pub mod recovery;
pub mod runners;
pub mod schedules;
pub mod sessions;
pub mod sink;
pub mod spider_store;
pub mod sweeping;

use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;

pub use trawl_common::ports::Result;

/// Makes a test of each promise of a suite. The suites' own macros call it with their lists.
#[macro_export]
macro_rules! promises {
    ($fixture:path, $suite:ident: $($promise:ident)*) => { $(
        #[tokio::test]
        async fn $promise() -> $crate::conformance::Result<()> {
            let (_guard, port) = $fixture().await;
            $crate::conformance::$suite::$promise(&port).await
        }
    )* };
}

/// Returns a name that no other test uses, on this machine or in the store.
fn unique(what: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{what}-{:x}-{:x}-{count}", process::id(), UnixMs::now().0)
}

/// Returns the URL of page `number` of `site`.
fn page(site: &str, number: usize) -> CanonicalUrl {
    CanonicalUrl::parse(&format!("http://{site}.example/{number}")).expect("it is written as a URL")
}

/// Repeats `ask` until it returns `true`. Panics after `limit`.
async fn eventually(limit: Duration, mut ask: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + limit;
    while !ask().await? {
        assert!(Instant::now() < deadline, "it did not happen within {limit:?}");
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

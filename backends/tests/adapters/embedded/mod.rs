//! The embedded engine keeps every promise of its ports, and those of its file.

mod file;
mod flipped;
mod killed;
mod order;
mod refused;
mod resumed;
mod support;
mod unreadable;

use std::sync::Arc;

use proptest::prelude::*;
use tempfile::TempDir;
use trawl_backends::embedded::Embedded;
use trawl_common::ports::{Cache, PageHistories, Sessions};
use trawl_testkit::conformance::carrying::Carrier;
use trawl_testkit::conformance::carrying::random::{obeys_the_model, steps};
use trawl_testkit::conformance::hosts::{Frugal, HostPorts};

use self::support::*;

async fn frugal() -> (TempDir, Frugal) {
    let (directory, engine) = state_file();
    (directory, Frugal { hosts: engine.hosts(), robots_bytes: 32 << 20 })
}

async fn hosts() -> ((), HostPorts) {
    let engine = Embedded::in_memory().unwrap();
    ((), HostPorts { hosts: engine.hosts(), control: engine.host_control() })
}

async fn cache() -> ((), Arc<dyn Cache>) {
    ((), Embedded::in_memory().unwrap().cache())
}

async fn pages() -> (TempDir, Arc<dyn PageHistories>) {
    let (directory, engine) = state_file();
    (directory, engine.pages())
}

async fn sessions() -> (TempDir, Arc<dyn Sessions>) {
    let (directory, engine) = state_file();
    (directory, engine.sessions())
}

async fn carrier() -> (TempDir, Carrier) {
    let (directory, engine) = state_file();
    let carrier = carrier_of(&engine);
    (directory, carrier)
}

trawl_testkit::carrying_conformance!(carrier);
trawl_testkit::one_process_conformance!(carrier);
trawl_testkit::hosts_conformance!(hosts, frugal);
trawl_testkit::cache_conformance!(cache);
trawl_testkit::pages_conformance!(pages);
trawl_testkit::sessions_conformance!(sessions);

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_order_of_calls_makes_the_stats_disagree(steps in steps()) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("crawl.db");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let connect = async || Embedded::open(&path).map(|engine| carrier_of(&engine));
        runtime.block_on(obeys_the_model(connect, |_| None::<()>, &steps)).unwrap();
    }
}

//! The fault suite's short form: each kind of fault once, over two crawls that run side by side.
//!
//! The long form is `scripts/faults`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use tempfile::TempDir;
use trawl_testkit::faults::kind::{Kind, Subject};
use trawl_testkit::faults::report::Table;
use trawl_testkit::faults::run::{Options, run};

/// Runs a crawl through each of these kinds of fault once.
async fn every_url_is_accounted_for(kinds: Vec<Kind>) {
    let seed = std::env::var("FAULTS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let folder = tempfile::tempdir().unwrap();
    let outcome = run(&options(&folder, kinds, seed)).await.unwrap();
    let mut table = Table::default();
    table.add(&outcome.verdict.rows);
    eprint!("{}", table.text());
    assert!(outcome.verdict.problems.is_empty(), "{}repeat it with FAULTS_SEED={seed}", outcome.complaint());
}

fn options(folder: &TempDir, kinds: Vec<Kind>, seed: u64) -> Options {
    Options {
        trawl: env!("CARGO_BIN_EXE_trawl").into(),
        folder: folder.path().to_owned(),
        pages: 40 * kinds.len(),
        faults: kinds.len(),
        seed,
        workers: 2,
        patience: Duration::from_secs(2),
        kinds,
        aloud: false,
    }
}

fn kinds(subjects: &[Subject]) -> Vec<Kind> {
    Kind::ALL.into_iter().filter(|kind| subjects.contains(&kind.subject())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_survives_what_can_happen_to_redis_and_to_the_producer() {
    every_url_is_accounted_for(kinds(&[Subject::Store, Subject::Producer])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_survives_what_can_happen_to_rabbitmq_and_to_workers() {
    every_url_is_accounted_for(kinds(&[Subject::Broker, Subject::Worker])).await;
}

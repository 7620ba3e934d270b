//! The short form of the fault suite: each kind of fault once, over a few crawls that run side by side.
//!
//! The long form is `scripts/faults`. Other tests inject a single fault at an exact moment.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use strum::VariantArray;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use trawl_testkit::faults::environment::Environment;
use trawl_testkit::faults::fleet::Programs;
use trawl_testkit::faults::kind::{Kind, Subject};
use trawl_testkit::faults::options::Options;
use trawl_testkit::faults::outcome::Outcome;
use trawl_testkit::faults::plan::Step;
use trawl_testkit::faults::proxy::Mode;
use trawl_testkit::faults::report::Table;
use trawl_testkit::faults::run::run;
use trawl_testkit::faults::scenario::{CRAWL, Scenario};

const LIMIT: Duration = Duration::from_secs(60);

/// Maximum number of crawls for all faults: on a busy machine a crawl may end before its last fault.
const CRAWLS: usize = 3;

/// Time after which a silent process counts as lost. Programs hold their work for a while, and a lease lasts a quarter
/// of this, so it must exceed the time that a busy machine keeps a worker from extending its lease.
fn lost_after(scenario: Scenario) -> Duration {
    match scenario {
        Scenario::Tasks | Scenario::Requests => Duration::from_secs(6),
        _ => Duration::from_secs(3),
    }
}

/// Runs a scenario through each of these kinds of fault once.
async fn survives(scenario: Scenario, mut kinds: Vec<Kind>, pages_for_each: usize) {
    // The remaining kinds get as many pages again: a short crawl would end before a fault.
    let pages = pages_for_each * kinds.len();
    for _ in 0..CRAWLS {
        let folder = tempfile::tempdir().unwrap();
        let lost_after = lost_after(scenario);
        let options = Options { scenario, pages, lost_after, ..options(&folder, kinds, seed()) };
        let outcome = match run(&options).await {
            Ok(outcome) => outcome,
            Err(error) => panic!("the suite itself failed: {error}: see {}", folder.keep().display()),
        };
        kinds = outcome.missed.clone();
        judged(folder, outcome);
        if kinds.is_empty() {
            return;
        }
    }
    panic!("these faults came to no crawl: {kinds:?}");
}

async fn every_url_is_accounted_for(kinds: Vec<Kind>) {
    survives(Scenario::Sitemap, kinds, 70).await;
}

fn seed() -> u64 {
    std::env::var("FAULTS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

fn judged(folder: TempDir, outcome: Outcome) {
    let mut table = Table::default();
    table.add(&outcome.verdict.rows);
    eprint!("{}", table.text());
    if !outcome.verdict.problems.is_empty() {
        eprintln!("what every process said is kept in {}", folder.keep().join("logs").display());
    }
    assert_without_blame(&outcome);
}

fn assert_without_blame(outcome: &Outcome) {
    let seed = outcome.seed;
    assert!(outcome.verdict.problems.is_empty(), "{}repeat it with FAULTS_SEED={seed}", outcome.complaint());
}

/// Waits until the crawl has this many URLs.
async fn admitted(programs: &Programs, count: u64) {
    let looked = async {
        loop {
            let status = programs.command(["status", CRAWL, "--json"]).output().await.unwrap();
            let stats: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
            if stats["admitted"].as_u64().is_some_and(|admitted| admitted >= count) {
                return;
            }
        }
    };
    timeout(LIMIT, looked).await.unwrap();
}

fn options(folder: &TempDir, kinds: Vec<Kind>, seed: u64) -> Options {
    Options {
        trawl: env!("CARGO_BIN_EXE_trawl").into(),
        old: None,
        folder: folder.path().to_owned(),
        scenario: Scenario::Sitemap,
        pages: 200,
        faults: kinds.len(),
        seed,
        workers: 2,
        lost_after: lost_after(Scenario::Sitemap),
        kinds,
        aloud: false,
    }
}

fn kinds(subjects: &[Subject]) -> Vec<Kind> {
    Kind::VARIANTS.iter().copied().filter(|kind| subjects.contains(&kind.subject())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_survives_what_can_happen_to_redis_and_to_the_producer() {
    every_url_is_accounted_for(kinds(&[Subject::Store, Subject::Producer])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_survives_what_can_happen_to_rabbitmq() {
    every_url_is_accounted_for(kinds(&[Subject::Broker])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_survives_what_can_happen_to_workers() {
    every_url_is_accounted_for(kinds(&[Subject::Worker])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_survives_what_people_order_of_it_and_of_its_host() {
    every_url_is_accounted_for(kinds(&[Subject::Crawl])).await;
}

/// Runs a scenario through a few kinds of fault, including data loss of both servers.
async fn a_scenario_survives(scenario: Scenario, kinds: &[Kind]) {
    survives(scenario, kinds.to_vec(), 150).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_that_follows_links_and_redirects_survives_what_takes_its_workers_or_all_that_is_known() {
    let kinds = [
        Kind::WorkerKill,
        Kind::StoreFlushed,
        Kind::BrokerPurged,
        Kind::StoreTruncated,
        Kind::DatabaseStop,
        Kind::DatabaseKill,
    ];
    survives(Scenario::Links, kinds.to_vec(), 100).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_kept_whatever_happens() {
    let kinds = [Kind::WorkerKill, Kind::WorkerTerm, Kind::BrokerPurged, Kind::StoreKill];
    a_scenario_survives(Scenario::Limits, &kinds).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_fetches_once_more_what_an_earlier_one_did_whatever_happens() {
    let kinds = [Kind::WorkerKill, Kind::ProducerKill, Kind::BrokerPurged, Kind::StoreKill];
    a_scenario_survives(Scenario::Recrawl, &kinds).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_submit_tasks_survive_what_takes_their_workers_or_all_that_is_known() {
    let kinds = [Kind::WorkerKill, Kind::StoreFlushed, Kind::BrokerPurged, Kind::DeadLettersReplayed];
    survives(Scenario::Tasks, kinds.to_vec(), 60).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_survive_with_their_bodies_what_takes_their_workers_or_all_that_is_known() {
    let kinds = [Kind::WorkerKill, Kind::StoreEmptied, Kind::HostBlocked, Kind::DeadLettersReplayed];
    survives(Scenario::Requests, kinds.to_vec(), 60).await;
}

/// A crawl of 200 pages on its own servers, and a producer whose list, a named pipe, is not yet written.
async fn environment(folder: &TempDir) -> (Environment, Child) {
    let environment = Environment::set_up(&options(folder, Vec::new(), 1)).await.unwrap();
    let list = list(folder);
    assert!(Command::new("mkfifo").arg(&list).status().await.unwrap().success());
    let programs = environment.fleet.programs();
    let command = programs.command(["producer", list.to_str().unwrap(), "--crawl", CRAWL]);
    let producer = programs.spawn(command, "producer").unwrap();
    // The producer is connected to both servers once the crawl has counters.
    admitted(programs, 0).await;
    (environment, producer)
}

fn list(folder: &TempDir) -> PathBuf {
    folder.path().join("list.txt")
}

/// Writes the list with all pages.
async fn print_all(folder: &TempDir, environment: &Environment) {
    let pages: String = environment.web().pages().iter().map(|page| format!("{}\n", page.url)).collect();
    tokio::fs::write(list(folder), pages).await.unwrap();
    admitted(environment.fleet.programs(), 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn urls_of_a_producer_killed_before_it_published_are_fetched_though_it_never_runs_again() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, mut producer) = environment(&folder).await;
    // From here on its messages are lost.
    environment.injector.broker_proxy.set(Mode::Swallow);
    print_all(&folder, &environment).await;
    producer.kill().await.unwrap();
    environment.injector.broker_proxy.cut();
    environment.injector.broker_proxy.set(Mode::Pass);
    assert_without_blame(&environment.ends(Vec::new()).await.unwrap());
}

/// Injects a fault half-way through a crawl whose producer has ended long ago: data lost by one server is only in the
/// other.
async fn nothing_is_lost_without_a_producer(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let (mut environment, mut producer) = environment(&folder).await;
    print_all(&folder, &environment).await;
    assert!(timeout(LIMIT, producer.wait()).await.unwrap().unwrap().success());
    assert!(environment.comes_to(100).await);
    let step = Step { kind, after: 100, pause: Duration::ZERO, pick: 0 };
    let fault = environment.injector.inject(&step, &environment.fleet, &environment.timeline).await.unwrap();
    assert_without_blame(&environment.ends(vec![fault]).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_without_a_producer_survives_an_emptied_redis() {
    nothing_is_lost_without_a_producer(Kind::StoreEmptied).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_without_a_producer_survives_a_rabbitmq_that_lost_its_disk() {
    nothing_is_lost_without_a_producer(Kind::BrokerGone).await;
}

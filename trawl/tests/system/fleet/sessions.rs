//! A site behind a log-in, in a fleet whose workers are killed.

use std::fs;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Child;
use tokio::time::timeout;
use trawl_testkit::portal_site::{PAGES, PASSWORD, PER_PAGE, PortalSite, USER, check, spider};

use crate::support::{Fleet, LIMIT, ends_well};

const ENDLESS: Duration = Duration::from_secs(3600);

/// Every page of the portal that a crawl shows.
const ALL: usize = PAGES * (PER_PAGE + 1);

fn worker(fleet: &Fleet) -> Child {
    fleet.worker(&[("PORTAL_USER", USER), ("PORTAL_PASSWORD", PASSWORD), ("TRAWL__RETRY__BACKOFF", "100ms")])
}

fn write(fleet: &Fleet, text: &str) {
    fs::write(fleet.folder.path().join(format!("spiders/{}.toml", fleet.name)), text).unwrap();
}

fn producer(fleet: &Fleet) -> Child {
    let (spider, crawl) = (format!("--spider={}", fleet.name), format!("--crawl={}", fleet.name));
    let mut producer = fleet.command(&["producer", &spider, &crawl, "--wait"]);
    producer.env("PORTAL_USER", USER).env("PORTAL_PASSWORD", PASSWORD).spawn().unwrap()
}

async fn stats(fleet: &Fleet) -> Value {
    let printed = fleet.command(&["status", &fleet.name, "--json"]).output().await.unwrap();
    serde_json::from_slice(&printed.stdout).unwrap_or_default()
}

#[tokio::test]
async fn a_fleet_logs_in_once_for_each_lapse_also_when_a_worker_is_killed() {
    let (fleet, site) = (Fleet::new().await, PortalSite::serve(50, ENDLESS).await);
    write(&fleet, &spider(&site.origin));
    site.gate.hold_after(70);
    let (mut doomed, other) = (worker(&fleet), worker(&fleet));
    let mut producer = producer(&fleet);
    timeout(LIMIT, site.gate.asked_for(71)).await.unwrap();
    doomed.kill().await.unwrap();
    let third = worker(&fleet);
    site.gate.answer_all();
    assert_eq!(timeout(LIMIT * 2, producer.wait()).await.unwrap().unwrap().code(), Some(0));
    check(&fleet.items().await);
    let log = site.log();
    // A page that a killed worker was asking for is asked for once more.
    let shown: usize = log.shown.values().sum();
    assert!((ALL..ALL + 30).contains(&(shown - log.shown["/account"])), "{log:?}");
    assert_eq!((log.needless, log.refused, log.forgetful), (0, 0, 0), "{log:?}");
    assert_eq!((log.logins, log.forms), (log.shown["/account"], log.logins), "{log:?}");
    assert!(log.logins.abs_diff(shown.div_ceil(50)) <= 1, "{log:?}");
    assert_eq!(stats(&fleet).await["failed"], 0);
    ends_well(other).await;
    ends_well(third).await;
}

#[tokio::test]
async fn a_session_outlives_all_workers() {
    let (fleet, site) = (Fleet::new().await, PortalSite::serve(usize::MAX, ENDLESS).await);
    write(&fleet, &spider(&site.origin));
    site.gate.hold_after(40);
    let mut doomed = [worker(&fleet), worker(&fleet)];
    let mut producer = producer(&fleet);
    timeout(LIMIT, site.gate.asked_for(41)).await.unwrap();
    for worker in &mut doomed {
        worker.kill().await.unwrap();
    }
    site.gate.answer_all();
    let heir = worker(&fleet);
    assert_eq!(timeout(LIMIT, producer.wait()).await.unwrap().unwrap().code(), Some(0));
    check(&fleet.items().await);
    assert_eq!((site.log().logins, site.log().sent_away), (1, 0), "{:?}", site.log());
    ends_well(heir).await;
}

#[tokio::test]
async fn a_log_in_that_keeps_failing_pauses_the_crawl_for_a_reason_and_goes_on_when_it_is_resumed() {
    let (fleet, site) = (Fleet::new().await, PortalSite::serve(usize::MAX, ENDLESS).await);
    write(&fleet, &spider(&site.origin));
    site.break_login(true);
    let workers = [worker(&fleet), worker(&fleet)];
    let mut producer = producer(&fleet);
    let paused = async { while stats(&fleet).await["status"] != "paused" {} };
    timeout(LIMIT, paused).await.unwrap();
    let failed = site.log().failed;
    assert_eq!((failed, site.log().logins), (3, 0), "{:?}", site.log());
    let held = stats(&fleet).await["held"].as_str().unwrap_or_default().to_owned();
    assert!(held.contains("step 2 of the log-in: POST") && held.contains("500"), "{held}");
    let status = fleet.command(&["status", &fleet.name]).output().await.unwrap();
    let status = String::from_utf8(status.stdout).unwrap();
    assert!(status.contains("is paused: the log-in of the spider"), "{status}");
    assert!(!status.contains(PASSWORD));
    site.break_login(false);
    assert!(fleet.command(&["resume", &fleet.name, "-q"]).status().await.unwrap().success());
    assert_eq!(timeout(LIMIT * 2, producer.wait()).await.unwrap().unwrap().code(), Some(0));
    check(&fleet.items().await);
    assert_eq!((site.log().failed, site.log().logins), (failed, 1), "{:?}", site.log());
    assert_eq!(stats(&fleet).await["held"], Value::Null);
    for worker in workers {
        ends_well(worker).await;
    }
}

//! Sitemaps are requested under the same host schedules as pages.

use std::process::Output;
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;
use trawl_testkit::many_hosts::{Arrival, ManyHosts, Plan};

use crate::politeness::{Engine, SLOW, SLOW_INTERVAL, assert_paced, on_both_engines, paths, times};
use crate::support::{Fleet, LIMIT, ends_well};

on_both_engines! {
    sitemaps_and_pages_of_a_host_share_its_rate
    a_host_that_many_sitemaps_redirect_to_is_asked_at_its_rate
    a_host_that_refuses_its_sitemap_is_left_alone_and_asked_again
}

/// Crawls the URLs of these sources, and returns the stats and the output.
async fn crawl(engine: Engine, sources: &[String], settings: &[(&str, &str)]) -> (Value, String) {
    let fleet = Fleet::new().await;
    match engine {
        Engine::Embedded => {
            let mut command = fleet.command(&["crawl", "--json", "-q"]);
            command.args(sources).env_remove("RABBITMQ_URL").env_remove("REDIS_URL");
            command.envs(settings.iter().copied());
            let output = timeout(LIMIT, command.output()).await.unwrap().unwrap();
            let stats = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
            (stats, stderr_of(&output))
        }
        Engine::Fleet => {
            let worker = fleet.worker(settings);
            let produced = produce(&fleet, sources, settings).await;
            let printed = fleet.command(&["status", &fleet.name, "--json"]).output().await.unwrap();
            let stats = serde_json::from_slice(&printed.stdout).unwrap_or_else(|_| panic!("{produced:?}"));
            ends_well(worker).await;
            (stats, stderr_of(&produced))
        }
    }
}

/// Runs a producer of these sources until their URLs are done.
async fn produce(fleet: &Fleet, sources: &[String], settings: &[(&str, &str)]) -> Output {
    let mut producer = fleet.producer(&sources[0]);
    producer.args(&sources[1..]).envs(settings.iter().copied());
    timeout(LIMIT, producer.output()).await.unwrap().unwrap()
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

async fn sitemaps_and_pages_of_a_host_share_its_rate(engine: Engine) {
    let world = ManyHosts::serve(&[Plan { pages: 5, ..Plan::default() }]).await.unwrap();
    let rate = [("TRAWL__POLITENESS__RATE", SLOW)];
    let (stats, printed) = crawl(engine, &[world.url(0, "/index/5.xml")], &rate).await;
    assert_eq!(&stats["done"], 5, "{stats} {printed}");
    // The index, its parts, robots.txt and the pages.
    let times = times(&world.log());
    assert_eq!(times.len(), 1 + 5 + 1 + 5);
    assert_paced(&times, SLOW_INTERVAL);
}

async fn a_host_that_many_sitemaps_redirect_to_is_asked_at_its_rate(engine: Engine) {
    let world = ManyHosts::serve(&vec![Plan { pages: 1, ..Plan::default() }; 21]).await.unwrap();
    let sources: Vec<String> = (1..=20).map(|host| world.url(host, "/away/0/0.xml")).collect();
    let (stats, printed) = crawl(engine, &sources, &[("TRAWL__POLITENESS__RATE", SLOW)]).await;
    assert_eq!(&stats["done"], 1, "{stats} {printed}");
    let victims: Vec<Arrival> = world.log().into_iter().filter(|arrival| arrival.host == 0).collect();
    assert_eq!(victims.iter().filter(|arrival| arrival.path == "/part/0.xml").count(), 20);
    assert_paced(&times(&victims), SLOW_INTERVAL);
}

async fn a_host_that_refuses_its_sitemap_is_left_alone_and_asked_again(engine: Engine) {
    let world =
        ManyHosts::serve(&[Plan { pages: 3, refuses: Some((1, 2)), ..Plan::default() }]).await.unwrap();
    let (stats, printed) = crawl(engine, &[world.url(0, "/index/3.xml")], &[]).await;
    assert_eq!((&stats["done"], printed.contains("problem")), (&3.into(), false), "{stats} {printed}");
    let log = world.log();
    assert_eq!(paths(&log, 0)[..3], ["/index/3.xml", "/part/0.xml", "/part/0.xml"]);
    let left_alone = log[2].at - log[1].at;
    assert!(left_alone >= Duration::from_millis(1_990), "{left_alone:?}");
}

#[tokio::test]
async fn a_sitemap_of_a_blocked_host_is_not_requested_and_the_producer_reports_it() {
    let fleet = Fleet::new().await;
    let world = ManyHosts::serve(&vec![Plan { pages: 2, ..Plan::default() }; 3]).await.unwrap();
    let blocked = world.host(0);
    assert!(fleet.command(&["hosts", "block", &blocked]).status().await.unwrap().success());
    let sources = [world.url(0, "/part/0.xml"), world.url(1, "/away/0/1.xml"), world.url(2, "/part/0.xml")];
    let worker = fleet.worker(&[]);
    let produced = produce(&fleet, &sources, &[]).await;
    let printed = stderr_of(&produced);
    let problem = format!("not asked for: {blocked} is blocked, until `trawl hosts unblock {blocked}`");
    assert_eq!(printed.matches(&problem).count(), 2, "{printed}");
    let log = world.log();
    assert_eq!((paths(&log, 0), paths(&log, 1)), (vec![], vec!["/away/0/1.xml"]));
    assert_eq!(paths(&log, 2), ["/part/0.xml", "/robots.txt", "/page/0"]);
    ends_well(worker).await;
}

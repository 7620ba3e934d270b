//! Hosts whose robots.txt files would need more memory than there is.

use std::fs;

use serde_json::Value;
use tokio::time::timeout;
use trawl_testkit::ports::Ports;

use crate::fleet::write_spider;
use crate::support::{Fleet, LIMIT, ends_well};

/// The number of links that a page of two megabytes may have, and more ports than a host has.
const PORTS: usize = 299;

/// Crawls from the page at the first port, and returns the stats.
async fn crawl(fleet: &Fleet, host: &Ports) -> Value {
    fs::write(fleet.folder.path().join("list.txt"), host.url(0, "/page")).unwrap();
    let produced = timeout(LIMIT, fleet.producer("list.txt").output()).await.unwrap().unwrap();
    assert_eq!(produced.status.code(), Some(0), "{}", String::from_utf8_lossy(&produced.stderr));
    let printed = fleet.command(&["status", &fleet.name, "--json"]).output().await.unwrap();
    serde_json::from_slice(&printed.stdout).unwrap()
}

/// Returns the size of all robots.txt files in the fleet's Redis.
async fn bytes_kept(fleet: &Fleet) -> usize {
    let redis = redis::Client::open(fleet.redis.reveal()).unwrap();
    let mut redis = redis.get_multiplexed_async_connection().await.unwrap();
    let keys: Vec<String> = redis::cmd("KEYS").arg("robots:*").query_async(&mut redis).await.unwrap();
    let mut bytes = 0;
    for key in keys {
        bytes += redis::cmd("STRLEN").arg(key).query_async::<usize>(&mut redis).await.unwrap();
    }
    bytes
}

#[tokio::test]
async fn large_robots_files_of_one_host_with_many_ports_keep_to_their_budget() {
    let (fleet, host) = (Fleet::new().await, Ports::serve(PORTS, 20_000).await);
    write_spider(&fleet, "[follow]\n");
    let worker = fleet.worker(&[("TRAWL__REDIS__MAX_ROBOTS_BYTES", "1 MB")]);
    let stats = crawl(&fleet, &host).await;
    assert_eq!((&stats["done"], &stats["skipped"]), (&PORTS.into(), &PORTS.into()), "{stats}");
    // Without a cache each file would be requested at least twice. A worker whose threads are slow abandons some
    // requests and repeats them.
    let asked = host.robots_asked();
    assert!(
        (PORTS..PORTS + PORTS / 4).contains(&asked),
        "the worker remembers what Redis does not keep: {asked}"
    );
    let kept = bytes_kept(&fleet).await;
    assert!((500_000..=1_000_000).contains(&kept), "{kept}");
    ends_well(worker).await;
}

#[tokio::test]
async fn one_robots_txt_holds_for_all_ports_of_a_host_if_the_spider_asks_for_it() {
    let (fleet, host) = (Fleet::new().await, Ports::serve(PORTS, 0).await);
    write_spider(&fleet, "[follow]\n[politeness]\nrobots_for = \"host\"\n");
    let worker = fleet.worker(&[]);
    let stats = crawl(&fleet, &host).await;
    assert_eq!((&stats["done"], &stats["skipped"]), (&PORTS.into(), &PORTS.into()), "{stats}");
    assert_eq!(host.robots_asked(), 1);
    ends_well(worker).await;
}

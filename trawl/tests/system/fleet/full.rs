//! A full Redis: known URLs are crawled, new ones wait, and nothing is lost.

use std::fs;

use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use trawl_common::settings::ServerUrl;
use trawl_testkit::own_redis::OwnRedis;
use trawl_testkit::site::Site;

use crate::fleet::write_spider;
use crate::support::{Fleet, LIMIT, ends_well};

async fn fleet_on(redis: &OwnRedis) -> Fleet {
    Fleet { redis: ServerUrl::new(redis.url.reveal()), ..Fleet::new().await }
}

/// A producer that feeds these pages for the fleet's spider.
fn producer(fleet: &Fleet, pages: impl Iterator<Item = String>, crawl: &str) -> Command {
    let list: String = pages.map(|page| page + "\n").collect();
    fs::write(fleet.folder.path().join("list.txt"), list).unwrap();
    let (spider, crawl) = (format!("--spider={}", fleet.name), format!("--crawl={crawl}"));
    fleet.command(&["producer", "list.txt", &spider, &crawl, "-q"])
}

async fn crawl_stats(fleet: &Fleet, crawl: &str) -> Value {
    let printed = fleet.command(&["status", crawl, "--json"]).output().await.unwrap();
    serde_json::from_slice(&printed.stdout).unwrap_or_default()
}

/// Feeds a crawl of these pages.
async fn feed(fleet: &Fleet, pages: impl Iterator<Item = String>, crawl: &str) {
    assert!(producer(fleet, pages, crawl).status().await.unwrap().success());
}

async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let waiting = async { while !is_so().await {} };
    timeout(LIMIT, waiting).await.unwrap_or_else(|_| panic!("{what}"));
}

async fn terminate(child: &Child) {
    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
}

#[tokio::test]
async fn a_worker_that_starts_on_a_full_redis_brings_to_its_end_what_is_there() {
    let redis = OwnRedis::start().await;
    let (fleet, site) = (fleet_on(&redis).await, Site::serve(20).await);
    feed(&fleet, (0..20).map(|number| site.page(number)), &fleet.name).await;
    redis.fill().await;
    let worker = fleet.worker(&[]);
    until("all is fetched", async || crawl_stats(&fleet, &fleet.name).await["done"] == 20).await;
    until("the crawl ends", async || crawl_stats(&fleet, &fleet.name).await["status"] == "finished").await;
    ends_well(worker).await;
}

#[tokio::test]
async fn pages_whose_links_do_not_fit_wait_without_blocking_others_and_go_on_when_memory_is_free() {
    let redis = OwnRedis::start().await;
    let (fleet, site) = (fleet_on(&redis).await, Site::serve(30).await);
    write_spider(&fleet, "[follow]\n");
    // This page links to the first page.
    let pages = [site.page(5), format!("{}/broken", site.origin), format!("{}/nothing", site.origin)];
    feed(&fleet, pages.into_iter(), &fleet.name).await;
    redis.fill().await;
    let worker = fleet.worker(&[("TRAWL__RETRY__MAX", "0")]);
    until("what has no links ends", async || crawl_stats(&fleet, &fleet.name).await["failed"] == 2).await;
    until("the worker says so", async || {
        let printed = fleet.command(&["status"]).output().await.unwrap();
        String::from_utf8_lossy(&printed.stdout).contains("the store is full")
    })
    .await;
    let held = crawl_stats(&fleet, &fleet.name).await;
    assert_eq!((&held["admitted"], &held["done"]), (&3.into(), &0.into()), "{held}");
    redis.free_memory().await;
    until("the links are followed", async || crawl_stats(&fleet, &fleet.name).await["done"] == 2).await;
    assert_eq!(site.log()["/page/5"], 1, "what was held back was not fetched again");
    ends_well(worker).await;
}

#[tokio::test]
async fn a_worker_that_is_stopped_releases_pages_whose_links_do_not_fit() {
    let redis = OwnRedis::start().await;
    let (fleet, site) = (fleet_on(&redis).await, Site::serve(30).await);
    write_spider(&fleet, "[follow]\n");
    feed(&fleet, [site.page(5)].into_iter(), &fleet.name).await;
    redis.fill().await;
    let worker = fleet.worker(&[("TRAWL__WORKER__SHUTDOWN_TIMEOUT", "1s")]);
    timeout(LIMIT, site.asked_for(1)).await.unwrap();
    ends_well(worker).await;
    redis.free_memory().await;
    let worker = fleet.worker(&[]);
    until("all is fetched", async || crawl_stats(&fleet, &fleet.name).await["done"] == 2).await;
    ends_well(worker).await;
}

#[tokio::test]
async fn a_producer_on_a_full_redis_waits_stops_at_once_when_it_is_asked_to_and_loses_nothing() {
    let redis = OwnRedis::start().await;
    let (fleet, site) = (fleet_on(&redis).await, Site::serve(20).await);
    feed(&fleet, (0..5).map(|number| site.page(number)), &fleet.name).await;
    redis.fill().await;
    for crawl in [&fleet.name, "another"] {
        let mut command = producer(&fleet, (0..20).map(|number| site.page(number)), crawl);
        // Longer than the test waits, so that it cannot be what ends the run.
        let stuck = command.env("TRAWL__WORKER__SHUTDOWN_TIMEOUT", "600s").env("TRAWL__LOG__LEVEL", "warn");
        let log = fleet.folder.path().join(format!("{crawl}.log"));
        let mut stuck = stuck.stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
        until("it reports that", async || fs::read_to_string(&log).unwrap().contains("the store is full"))
            .await;
        terminate(&stuck).await;
        assert_eq!(timeout(LIMIT, stuck.wait()).await.unwrap().unwrap().code(), Some(143));
    }
    assert_eq!(crawl_stats(&fleet, &fleet.name).await["admitted"], 5);
    redis.free_memory().await;
    feed(&fleet, (0..20).map(|number| site.page(number)), "third").await;
    let worker = fleet.worker(&[]);
    until("all is fetched", async || crawl_stats(&fleet, "third").await["done"] == 15).await;
    ends_well(worker).await;
}

#[tokio::test]
async fn a_redis_that_throws_records_away_takes_in_nothing_and_no_crawl_ends_as_finished_there() {
    let redis = OwnRedis::start().await;
    let (fleet, site) = (fleet_on(&redis).await, Site::serve(20).await);
    feed(&fleet, (0..20).map(|number| site.page(number)), &fleet.name).await;
    site.hold_after(0);
    let worker = fleet.worker(&[]);
    timeout(LIMIT, site.asked_for(4)).await.unwrap();
    // Redis evicts an unimportant key; the test then deletes the records of the crawl, as if they had been evicted too.
    redis.set("maxmemory-policy", "volatile-random").await;
    let () = redis.ask(redis::cmd("SET").arg("junk").arg("x").arg("EX").arg(600)).await;
    redis.fill().await;
    until("a key is thrown away", async || {
        let _: redis::Value = redis.ask(&redis::cmd("PING")).await;
        let stats: String = redis.ask(redis::cmd("INFO").arg("stats")).await;
        !stats.contains("evicted_keys:0")
    })
    .await;
    redis.set("maxmemory", "10gb").await;
    redis.set("maxmemory-policy", "allkeys-random").await;
    let [crawl, records] =
        ["crawl", "pending"].map(|kind| format!("{{crawled_urls:{0}}}:{kind}:{0}", fleet.name));
    let () = redis.ask(redis::cmd("HSET").arg(crawl).arg("evictions").arg(0)).await;
    let log = fleet.folder.path().join("producer.log");
    let mut more = producer(&fleet, std::iter::once(site.page(19)), "another");
    let mut more =
        more.env("TRAWL__LOG__LEVEL", "warn").stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
    until("it says what to do", async || {
        fs::read_to_string(&log).unwrap().contains("config set maxmemory-policy noeviction")
    })
    .await;
    terminate(&more).await;
    assert_eq!(timeout(LIMIT, more.wait()).await.unwrap().unwrap().code(), Some(143));
    let () = redis.ask(redis::cmd("DEL").arg(records)).await;
    site.answer_all();
    until("the worker says so", async || {
        let printed = fleet.command(&["status"]).output().await.unwrap();
        String::from_utf8_lossy(&printed.stdout).contains("does not end by itself")
    })
    .await;
    assert_eq!(crawl_stats(&fleet, &fleet.name).await["status"], "running");
    ends_well(worker).await;
}

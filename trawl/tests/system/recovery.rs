//! Orders about a crawl survive the store that carries them out, and no crawl ends early.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use redis::aio::MultiplexedConnection;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;
use trawl_testkit::own_redis::OwnRedis;
use trawl_testkit::site::Site;

use crate::support::{Fleet, LIMIT, ends_well};

/// Returns a fleet with its own Redis, which can be restarted from its last save.
async fn forgetful() -> (Fleet, OwnRedis) {
    let redis = OwnRedis::start().await;
    (Fleet { redis: redis.url.clone(), ..Fleet::new().await }, redis)
}

async fn store(fleet: &Fleet) -> MultiplexedConnection {
    let client = redis::Client::open(fleet.redis.reveal()).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

/// Deletes everything in the store.
async fn empty(fleet: &Fleet) {
    let () = redis::cmd("FLUSHDB").query_async(&mut store(fleet).await).await.unwrap();
}

/// Returns the records of the crawl's URLs that have not ended.
async fn records(fleet: &Fleet) -> HashMap<String, String> {
    let name = &fleet.name;
    let key = format!("{{crawled_urls:{name}}}:pending:{name}");
    redis::cmd("HGETALL").arg(key).query_async(&mut store(fleet).await).await.unwrap()
}

/// Waits until `count` of the crawl's records are in one of `states`.
async fn records_become(fleet: &Fleet, count: usize, states: &[char]) {
    let waiting = async {
        while records(fleet).await.values().filter(|record| record.starts_with(states)).count() != count {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, waiting).await.expect("the records change so");
}

/// Writes a list of the site's first pages for a producer.
fn list(fleet: &Fleet, site: &Site, pages: usize) {
    let list: String = (0..pages).map(|number| site.page(number) + "\n").collect();
    fs::write(fleet.folder.path().join("list.txt"), list).unwrap();
}

/// Writes the file of the crawl's spider.
fn spider(fleet: &Fleet, text: &str) {
    write_spider(&fleet.folder.path().join("spiders"), &fleet.name, text);
}

fn write_spider(folder: &Path, name: &str, text: &str) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join(format!("{name}.toml")), text).unwrap();
}

/// Runs a command that must succeed.
async fn succeeds(mut command: Command) {
    let output = timeout(LIMIT, command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Admits the URLs on the list, and does not wait for them.
async fn produce(fleet: &Fleet) {
    let (spider, crawl) = (format!("--spider={}", fleet.name), format!("--crawl={}", fleet.name));
    succeeds(fleet.command(&["producer", "list.txt", &spider, &crawl, "-q"])).await;
}

/// Waits until the store knows the crawl, and returns its state.
async fn crawl_stats(fleet: &Fleet) -> Value {
    let known = async {
        loop {
            let output = fleet.command(&["status", &fleet.name, "--json"]).output().await.unwrap();
            if output.status.success() {
                return serde_json::from_slice(&output.stdout).unwrap();
            }
        }
    };
    timeout(LIMIT, known).await.expect("the crawl is known again")
}

/// Waits for the end of the crawl.
async fn end(fleet: &Fleet) -> Value {
    crawl_stats(fleet).await;
    timeout(LIMIT, fleet.command(&["wait", &fleet.name, "-q"]).output()).await.unwrap().unwrap();
    crawl_stats(fleet).await
}

fn pages_asked(site: &Site) -> usize {
    site.log().iter().filter(|(path, _)| path.starts_with("/page/")).map(|(_, asked)| asked).sum()
}

#[tokio::test]
async fn what_is_delivered_is_claimed_however_busy_the_worker_is() {
    let fleet = Fleet::new().await;
    let site = Site::serve(60).await;
    site.hold_after(0);
    list(&fleet, &site, 60);
    let mut producer = fleet.producer("list.txt").spawn().unwrap();
    let worker = fleet.worker(&[]);
    // Four are being fetched; the others wait.
    records_become(&fleet, 60, &['h', 'f']).await;
    site.answer_all();
    assert_eq!(timeout(LIMIT, producer.wait()).await.unwrap().unwrap().code(), Some(0));
    ends_well(worker).await;
}

#[tokio::test]
async fn a_page_limit_holds_in_a_store_that_was_emptied() {
    let fleet = Fleet::new().await;
    let site = Site::serve(60).await;
    spider(&fleet, "max_pages = 10\n");
    list(&fleet, &site, 60);
    site.hold_after(6);
    produce(&fleet).await;
    let worker = fleet.worker(&[]);
    timeout(LIMIT, site.asked_for(10)).await.unwrap();
    empty(&fleet).await;
    site.answer_all();
    let stats = end(&fleet).await;
    assert_eq!((&stats["status"], &stats["done"]), (&"finished".into(), &10.into()), "{stats}");
    // Pages that were done before or in flight may count once more.
    assert!(pages_asked(&site) <= 20, "{:?}", site.log());
    ends_well(worker).await;
}

#[tokio::test]
async fn a_cancelled_crawl_stays_cancelled_in_a_store_that_was_emptied() {
    let fleet = Fleet::new().await;
    let site = Site::serve(30).await;
    list(&fleet, &site, 30);
    produce(&fleet).await;
    succeeds(fleet.command(&["cancel", &fleet.name])).await;
    empty(&fleet).await;
    let worker = fleet.worker(&[]);
    assert_eq!(crawl_stats(&fleet).await["status"], "cancelled");
    ends_well(worker).await;
    assert_eq!(pages_asked(&site), 0);
}

#[tokio::test]
async fn a_paused_crawl_stays_paused_in_a_store_that_was_emptied_and_can_be_resumed() {
    let fleet = Fleet::new().await;
    let site = Site::serve(30).await;
    list(&fleet, &site, 30);
    produce(&fleet).await;
    succeeds(fleet.command(&["pause", &fleet.name])).await;
    empty(&fleet).await;
    let worker = fleet.worker(&[]);
    assert_eq!(crawl_stats(&fleet).await["status"], "paused");
    records_become(&fleet, 30, &['q', 'n', 'p']).await;
    assert_eq!(pages_asked(&site), 0);
    succeeds(fleet.command(&["resume", &fleet.name])).await;
    // It ends after the messages on the longest rung have come back; the store must assume that they are all that is
    // left.
    timeout(LIMIT, async { while crawl_stats(&fleet).await["done"] != 30 {} }).await.expect("all is fetched");
    ends_well(worker).await;
}

#[tokio::test]
async fn a_blocked_host_stays_blocked_in_a_store_that_was_emptied() {
    let fleet = Fleet::new().await;
    let site = Site::serve(10).await;
    list(&fleet, &site, 10);
    produce(&fleet).await;
    succeeds(fleet.command(&["hosts", "block", &site.origin])).await;
    empty(&fleet).await;
    let worker = fleet.worker(&[]);
    assert_eq!(end(&fleet).await["skipped"], 10);
    assert_eq!(pages_asked(&site), 0);
    ends_well(worker).await;
}

#[tokio::test]
async fn a_crawl_stays_cancelled_in_a_store_that_has_lost_its_last_second() {
    let (fleet, mut redis) = forgetful().await;
    let site = Site::serve(30).await;
    list(&fleet, &site, 30);
    produce(&fleet).await;
    redis.save().await;
    succeeds(fleet.command(&["cancel", &fleet.name])).await;
    redis.restart().await;
    let worker = fleet.worker(&[]);
    let cancelled = async { while crawl_stats(&fleet).await["status"] != "cancelled" {} };
    timeout(LIMIT, cancelled).await.expect("it is cancelled again");
    ends_well(worker).await;
    assert_eq!(pages_asked(&site), 0);
}

#[tokio::test]
async fn a_crawl_stays_paused_and_goes_on_in_a_store_that_has_lost_its_last_second_twice() {
    let (fleet, mut redis) = forgetful().await;
    let site = Site::serve(30).await;
    list(&fleet, &site, 30);
    produce(&fleet).await;
    redis.save().await;
    succeeds(fleet.command(&["pause", &fleet.name])).await;
    redis.restart().await;
    let worker = fleet.worker(&[]);
    let paused = async { while crawl_stats(&fleet).await["status"] != "paused" {} };
    timeout(LIMIT, paused).await.expect("it is paused again");
    assert_eq!(pages_asked(&site), 0);
    redis.save().await;
    succeeds(fleet.command(&["resume", &fleet.name])).await;
    redis.restart().await;
    timeout(LIMIT, async { while crawl_stats(&fleet).await["done"] != 30 {} }).await.expect("it goes on");
    ends_well(worker).await;
}

#[tokio::test]
async fn a_host_stays_blocked_in_a_store_that_has_lost_its_last_second() {
    let (fleet, mut redis) = forgetful().await;
    let site = Site::serve(40).await;
    list(&fleet, &site, 40);
    produce(&fleet).await;
    redis.save().await;
    succeeds(fleet.command(&["hosts", "block", &site.origin])).await;
    redis.restart().await;
    let worker = fleet.worker(&[]);
    let stats = end(&fleet).await;
    // Each of the four fetched at once may have had permission before the first of them started.
    assert!(pages_asked(&site) <= 4, "{stats} {:?}", site.log());
    ends_well(worker).await;
}

#[tokio::test]
async fn a_crawl_that_was_forgotten_while_its_last_pages_were_fetched_ends() {
    let fleet = Fleet::new().await;
    let site = Site::serve(4).await;
    site.hold_after(0);
    list(&fleet, &site, 4);
    produce(&fleet).await;
    let worker = fleet.worker(&[]);
    timeout(LIMIT, site.asked_for(4)).await.unwrap();
    empty(&fleet).await;
    site.answer_all();
    let stats = end(&fleet).await;
    assert_eq!((&stats["status"], &stats["done"]), (&"finished".into(), &4.into()), "{stats}");
    ends_well(worker).await;
}

#[tokio::test]
async fn a_crawl_that_was_forgotten_when_all_its_pages_were_done_ends_although_nobody_speaks_of_it() {
    let fleet = Fleet::new().await;
    let site = Site::serve(3).await;
    let mut producer = fleet.producer("-").stdin(Stdio::piped()).spawn().unwrap();
    // The producer keeps running: more may come.
    let mut input = producer.stdin.take().unwrap();
    let list: String = (0..3).map(|number| site.page(number) + "\n").collect();
    input.write_all(list.as_bytes()).await.unwrap();
    let worker = fleet.worker(&[]);
    timeout(LIMIT, async { while crawl_stats(&fleet).await["done"] != 3 {} }).await.expect("all is fetched");
    producer.kill().await.unwrap();
    empty(&fleet).await;
    assert_eq!(end(&fleet).await["status"], "finished");
    assert_eq!(pages_asked(&site), 3);
    ends_well(worker).await;
}

#[tokio::test]
async fn a_forgotten_crawl_that_is_opened_once_more_waits_for_what_is_on_the_ladder() {
    let fleet = Fleet::new().await;
    let site = Site::serve(1).await;
    fs::write(fleet.folder.path().join("list.txt"), format!("{}/broken\n", site.origin)).unwrap();
    let settings = [("TRAWL__RETRY__BACKOFF", "8s"), ("TRAWL__RETRY__MAX", "1")];
    produce(&fleet).await;
    let mut worker = fleet.worker(&settings);
    records_become(&fleet, 1, &['p']).await;
    worker.kill().await.unwrap();
    empty(&fleet).await;
    list(&fleet, &site, 1);
    produce(&fleet).await;
    let worker = fleet.worker(&settings);
    let stats = end(&fleet).await;
    assert_eq!((&stats["done"], &stats["failed"]), (&1.into(), &1.into()), "{stats}");
    ends_well(worker).await;
}

#[tokio::test]
async fn a_crawl_that_the_index_has_lost_is_listed_again_and_ends() {
    let fleet = Fleet::new().await;
    let site = Site::serve(8).await;
    site.hold_after(2);
    list(&fleet, &site, 8);
    produce(&fleet).await;
    let worker = fleet.worker(&[]);
    timeout(LIMIT, site.asked_for(6)).await.unwrap();
    let () = redis::cmd("DEL").arg("crawls").query_async(&mut store(&fleet).await).await.unwrap();
    assert_eq!(crawl_stats(&fleet).await["status"], "running");
    site.answer_all();
    assert_eq!(end(&fleet).await["done"], 8);
    ends_well(worker).await;
}

#[tokio::test]
async fn a_worker_without_the_spiders_file_leaves_its_urls_to_those_who_have_it() {
    let fleet = Fleet::new().await;
    let site = Site::serve(5).await;
    spider(&fleet, "[fields]\nheading = { css = 'title' }\n");
    list(&fleet, &site, 5);
    produce(&fleet).await;
    let elsewhere = fleet.worker(&[("TRAWL__SPIDERS_DIR", "elsewhere")]);
    records_become(&fleet, 5, &['p']).await;
    assert_eq!(pages_asked(&site), 0);
    ends_well(elsewhere).await;
    let worker = fleet.worker(&[]);
    assert_eq!(end(&fleet).await["done"], 5);
    assert!(fleet.items().await.iter().all(|item| item["fields"]["heading"].is_string()));
    ends_well(worker).await;
}

//! The work of a fleet does not grow with the ended crawls that it keeps.

use trawl_backends::redis::RedisRecords;
use trawl_common::names::SpiderName;
use trawl_common::ports::Stats;
use trawl_engine::Recovery;
use trawl_testkit::faults::replies::ReplyLoser;

use super::*;

const SPIDER: &str = "kept";

/// Writes crawls that are over, announced and cleared.
async fn keep_crawls(server: &settings::ServerUrl, count: usize) {
    let client = redis::Client::open(server.reveal()).unwrap();
    let mut writer = client.get_multiplexed_async_connection().await.unwrap();
    let now: (u64, u64) = redis::cmd("TIME").query_async(&mut writer).await.unwrap();
    for id in (0..count).map(|number| format!("kept-{number}")) {
        let fields = [("status", "finished"), ("announced", "1"), ("cleared", "1"), ("discovery", "ended")];
        let key = format!("{{crawled_urls:{SPIDER}}}:crawl:{id}");
        let mut pipeline = redis::pipe();
        pipeline.hset("crawls", &id, SPIDER).hset_multiple(&key, &fields);
        pipeline.hset(&key, "ended", now.0 * 1000);
        let () = pipeline.query_async(&mut writer).await.unwrap();
    }
}

/// Returns the number of replies that one round of the sweeper takes, and a look for a spider's open crawls, in a
/// process that has done both before.
async fn replies_beside(count: usize) -> u64 {
    let server = servers::own_database().await;
    keep_crawls(&server, count).await;
    let (proxy, url) = ReplyLoser::in_front_of(&server).await.unwrap();
    let records = RedisRecords::new(link(url).await, LONG, Dedup::Plain);
    let (worker, spider): (_, SpiderName) = ("w".parse().unwrap(), SPIDER.parse().unwrap());
    let looks = async || {
        records.sweep(&worker).await.unwrap();
        assert!(records.open_crawls(&spider).await.unwrap().is_empty());
    };
    looks().await;
    assert_eq!(records.crawls().await.unwrap().len(), count, "they are known");
    proxy.lose(0);
    looks().await;
    proxy.passed()
}

#[tokio::test]
async fn no_more_is_asked_of_redis_however_many_crawls_are_kept() {
    let (few, many) = (replies_beside(1).await, replies_beside(200).await);
    assert!(many <= few, "{few} replies beside one crawl, {many} beside 200");
}

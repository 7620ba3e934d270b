//! What a crawl is must outlive what knew it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::collections::HashMap;
use std::fs;

use redis::aio::MultiplexedConnection;
use support::{Fleet, LIMIT, ends_well};
use tokio::time::timeout;
use trawl_testkit::site::Site;

async fn store(fleet: &Fleet) -> MultiplexedConnection {
    let client = redis::Client::open(fleet.redis.reveal()).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

/// The records of the crawl's URLs that have not ended.
async fn records(fleet: &Fleet) -> HashMap<String, String> {
    let name = &fleet.name;
    let key = format!("{{crawled_urls:{name}}}:pending:{name}");
    redis::cmd("HGETALL").arg(key).query_async(&mut store(fleet).await).await.unwrap()
}

#[tokio::test]
async fn what_is_delivered_is_claimed_however_busy_the_worker_is() {
    let fleet = Fleet::new().await;
    let site = Site::serve(60).await;
    site.hold_after(0);
    let list: String = (0..60).map(|number| site.page(number) + "\n").collect();
    fs::write(fleet.folder.path().join("list.txt"), list).unwrap();
    let mut producer = fleet.producer("list.txt").spawn().unwrap();
    let worker = fleet.worker(&[]);
    let all_claimed = async {
        loop {
            let records = records(&fleet).await;
            let claimed = records.values().filter(|record| record.starts_with(['h', 'f'])).count();
            if claimed == 60 {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, all_claimed).await.expect("four are being fetched, and all are claimed");
    site.answer_all();
    assert_eq!(timeout(LIMIT, producer.wait()).await.unwrap().unwrap().code(), Some(0));
    ends_well(worker).await;
}

//! Kinds of pages, and what is carried between them, in a fleet whose workers are killed.

use std::fs;

use tokio::time::timeout;
use trawl_testkit::shop_site::{SPIDER, ShopSite, check};

use crate::support::{Fleet, LIMIT, ends_well};

#[tokio::test]
async fn what_is_carried_survives_a_killed_worker_and_each_item_is_there_once() {
    let (fleet, site) = (Fleet::new().await, ShopSite::serve().await);
    let file = fleet.folder.path().join(format!("spiders/{}.toml", fleet.name));
    fs::write(file, format!("start.urls = ['{}/']\n{SPIDER}", site.origin)).unwrap();
    site.gate.hold_after(30);
    let (mut doomed, other) = (fleet.worker(&[]), fleet.worker(&[]));
    let (spider, crawl) = (format!("--spider={}", fleet.name), format!("--crawl={}", fleet.name));
    let mut producer = fleet.command(&["producer", &spider, &crawl, "--wait"]).spawn().unwrap();
    timeout(LIMIT, site.gate.asked_for(31)).await.unwrap();
    doomed.kill().await.unwrap();
    let third = fleet.worker(&[]);
    site.gate.answer_all();
    assert_eq!(timeout(LIMIT, producer.wait()).await.unwrap().unwrap().code(), Some(0));
    check(&site.origin, &fleet.items().await);
    ends_well(other).await;
    ends_well(third).await;
}

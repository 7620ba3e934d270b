//! A worker that is suspended for longer than its leases last, and then resumed.

use std::fs;

use tokio::process::{Child, Command};
use tokio::time::timeout;
use trawl_testkit::site::Site;

use crate::support::{Fleet, LIMIT, ends_well};

async fn signal(worker: &Child, signal: &str) {
    let pid = worker.id().unwrap().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().await.unwrap().success());
}

#[tokio::test]
async fn a_worker_that_wakes_does_not_decide_about_what_another_has_taken_over() {
    let fleet = Fleet::new().await;
    let site = Site::serve(1).await;
    site.hold_after(0);
    fs::write(fleet.folder.path().join("list.txt"), format!("{}/late\n", site.origin)).unwrap();
    // It takes no second message of the lane, so the other worker gets all others.
    let zombie = fleet.worker(&[("TRAWL__WORKER__PREFETCH", "1")]);
    let mut producer = fleet.producer("list.txt").spawn().unwrap();
    timeout(LIMIT, site.asked_for(1)).await.unwrap();
    signal(&zombie, "-STOP").await;
    let worker = fleet.worker(&[]);
    timeout(LIMIT, site.asked_for(2)).await.unwrap();

    // The first worker gets a 404, and settles it before the other one has its response.
    site.hold_after(1);
    signal(&zombie, "-CONT").await;
    ends_well(zombie).await;
    site.answer_all();

    assert_eq!(timeout(LIMIT, producer.wait()).await.unwrap().unwrap().code(), Some(0));
    let listed = fleet.command(&["dlq", "list"]).output().await.unwrap();
    let printed = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(printed.contains("0 dead letters"), "{printed}");
    let channel = crate::fleet::channel_of(&fleet).await;
    let dead_letter =
        channel.basic_get("failed_urls".into(), lapin::options::BasicGetOptions::default()).await.unwrap();
    assert!(dead_letter.is_none(), "no other program sees a failure");
    assert_eq!(fleet.items().await.len(), 1);
    ends_well(worker).await;
}

/// Returns the number of times the page of a crawl was started without an end, from its record.
async fn starts(fleet: &Fleet) -> u32 {
    let client = redis::Client::open(fleet.redis.reveal()).unwrap();
    let name = &fleet.name;
    let mut store = client.get_multiplexed_async_connection().await.unwrap();
    let records: Vec<String> = redis::cmd("HVALS")
        .arg(format!("{{crawled_urls:{name}}}:pending:{name}"))
        .query_async(&mut store)
        .await
        .unwrap();
    let starts = records.first().and_then(|record| record.split(' ').nth(4)?.parse().ok());
    starts.unwrap_or_default()
}

/// They come back and report that, so their expired leases say nothing about the page.
#[tokio::test]
async fn workers_that_were_only_stopped_make_no_poison() {
    let fleet = Fleet::new().await;
    let site = Site::serve(1).await;
    site.hold_after(0);
    fs::write(fleet.folder.path().join("list.txt"), format!("{}\n", site.page(0))).unwrap();
    let mut producer = fleet.producer("list.txt").spawn().unwrap();
    let mut workers: Vec<Child> = Vec::new();
    for asked in 1..=6 {
        workers.push(fleet.worker(&[("TRAWL__WORKER__PREFETCH", "1")]));
        timeout(LIMIT, site.asked_for(asked)).await.unwrap();
        if let [.., stopped, _] = &workers[..] {
            signal(stopped, "-CONT").await;
            let waiting = async {
                while starts(&fleet).await > 1 {
                    tokio::task::yield_now().await;
                }
            };
            timeout(LIMIT, waiting).await.expect("only the start of the one that has the page counts");
        }
        if asked < 6 {
            signal(&workers[workers.len() - 1], "-STOP").await;
        }
    }
    site.answer_all();
    assert_eq!(timeout(LIMIT, producer.wait()).await.unwrap().unwrap().code(), Some(0));
    for worker in workers {
        ends_well(worker).await;
    }
}

//! A worker in a fleet of real processes that an operator drains.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{sleep, timeout};
use trawl_common::settings::Redis;
use trawl_testkit::site::Site;

use crate::support::{Fleet, LIMIT, ends_well, run};

async fn workers(fleet: &Fleet) -> Vec<Value> {
    let (listed, _) = run(fleet.command(&["workers", "--json"]), 0).await;
    listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the time of the worker's last heartbeat.
async fn signs_of_life(fleet: &Fleet, worker: &str) -> String {
    let settings = Redis { url: fleet.redis.clone(), ..Redis::default() };
    let mut link = trawl_backends::redis::connect(&settings).await.unwrap();
    let key = format!("workers:{worker}");
    redis::cmd("HGET").arg(key).arg("seen").query_async(&mut link).await.unwrap()
}

#[tokio::test]
async fn a_worker_that_is_drained_ends_by_itself_and_another_goes_on_with_all_that_is_left() {
    const PAGES: usize = 60;
    let fleet = Fleet::new().await;
    let site = Site::serve(PAGES).await;
    site.hold_after(2);
    let mut drained = fleet.worker(&[]);
    let mut producer = fleet.producer(&format!("{}/sitemap.xml", site.origin)).spawn().unwrap();
    // It holds all pages, and has started as many as it may.
    timeout(LIMIT, site.asked_for(4)).await.unwrap();
    let (alone, _) = run(fleet.command(&["workers", "--json"]), 0).await;
    let id = serde_json::from_str::<Value>(&alone).unwrap()["worker"].as_str().unwrap().to_owned();
    let staying = fleet.worker(&[]);
    let both_live = async { while workers(&fleet).await.len() < 2 {} };
    timeout(LIMIT, both_live).await.unwrap();

    let machine = id.rsplit_once('-').unwrap().0;
    let (_, error) = run(fleet.command(&["drain", machine]), 2).await;
    assert!(error.contains("several workers begin with"), "{error}");
    run(fleet.command(&["drain", "nobody"]), 2).await;
    run(fleet.command(&["drain", &id]), 0).await;
    let states = workers(&fleet).await;
    let is_draining = |state: &&Value| state["draining"] == true;
    let draining: Vec<&Value> = states.iter().filter(is_draining).map(|state| &state["worker"]).collect();
    assert_eq!(draining, [id.as_str()], "{states:?}");

    // It learns this from one heartbeat, and has acted on it before the next.
    let before = signs_of_life(&fleet, &id).await;
    let learns = async {
        let mut seen = before;
        for _ in 0..2 {
            let last = seen.clone();
            while seen == last {
                sleep(Duration::from_millis(50)).await;
                seen = signs_of_life(&fleet, &id).await;
            }
        }
    };
    timeout(LIMIT, learns).await.unwrap();
    assert_eq!(drained.try_wait().unwrap(), None, "it has begun pages");
    let (top, _) = run(fleet.command(&["top", "--json"]), 0).await;
    let top: Value = serde_json::from_str(&top).unwrap();
    assert_eq!((top["workers"].as_array().unwrap().len(), &top["crawls"][0]["admitted"]), (2, &PAGES.into()));
    assert!(top["lanes"].as_array().unwrap().iter().any(|lane| lane["lane"] == "wait"), "{top}");
    site.answer_all();
    assert_eq!(timeout(LIMIT, drained.wait()).await.unwrap().unwrap().code(), Some(0));
    assert_eq!(timeout(LIMIT, producer.wait()).await.unwrap().unwrap().code(), Some(0));
    let pages: Vec<usize> = site
        .log()
        .into_iter()
        .filter(|(path, _)| path.starts_with("/page/"))
        .map(|(_, times)| times)
        .collect();
    assert_eq!(pages, [1; PAGES], "each page is fetched, and none twice");
    ends_well(staying).await;
}

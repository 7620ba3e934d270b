//! Hosts and workers.

use std::sync::Arc;

use reqwest::Method;
use trawl_api::Backend;
use trawl_common::ports::BeatReply;

use crate::fixture::{Fixture, VIEWER, grouping};

promises! {
    a_host_is_blocked_listed_shown_and_let_go
    hosts_are_listed_a_page_at_a_time_by_name
    a_host_that_nobody_knows_is_not_found
    workers_are_listed
    lanes_are_listed_each_with_what_waits_in_it
    a_worker_that_is_asked_to_end_learns_it_with_its_next_sign_of_life
}

async fn a_host_is_blocked_listed_shown_and_let_go(fixture: &Fixture) {
    let blocked = fixture.post("/api/v1/hosts/A.example/block").await;
    assert_eq!((blocked.status, &blocked.body["host"]), (200, &"a.example".into()));
    let host = fixture.get("/api/v1/hosts/a.example").await.body;
    assert!(host["blocked"].as_str().is_some_and(|since| since.ends_with('Z')), "{host}");
    assert_eq!(fixture.get("/api/v1/hosts").await.body["hosts"][0]["host"], "a.example");
    for _ in 0..2 {
        let answer = fixture.post("/api/v1/hosts/a.example/unblock").await;
        assert_eq!((answer.status, &answer.body["blocked"]), (200, &false.into()));
    }
    let hosts = fixture.get("/api/v1/hosts").await.body;
    let is_blocked = |host: &serde_json::Value| !host["blocked"].is_null();
    assert!(!hosts["hosts"].as_array().unwrap().iter().any(is_blocked), "{hosts}");
}

async fn hosts_are_listed_a_page_at_a_time_by_name(fixture: &Fixture) {
    for host in ["c.example", "a.example", "b.example"] {
        assert_eq!(fixture.post(&format!("/api/v1/hosts/{host}/block")).await.status, 200);
    }
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = fixture.get(&format!("/api/v1/hosts?limit=1{cursor}")).await.body;
        listed.push(page["hosts"][0]["host"].as_str().unwrap().to_owned());
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(listed, ["a.example", "b.example", "c.example"]);
}

async fn a_host_that_nobody_knows_is_not_found(fixture: &Fixture) {
    for host in ["a.example", "@cdn", "no%20host", "%ff", "a%2Fb", &"x".repeat(300)] {
        assert_eq!(fixture.get(&format!("/api/v1/hosts/{host}")).await.status, 404, "{host}");
    }
    for host in ["@cdn", "no%20host", "%00"] {
        assert_eq!(fixture.post(&format!("/api/v1/hosts/{host}/block")).await.status, 404, "{host}");
    }
    assert_eq!(fixture.get("/api/v1/hosts").await.body["hosts"], serde_json::json!([]));
}

async fn workers_are_listed(fixture: &Fixture) {
    let worker = fixture.worker();
    let broken = "its file has a mistake";
    worker.beat(|beat| beat.outdated = [("shop".parse().unwrap(), broken.to_owned())].into()).await;
    let workers = fixture.get("/api/v1/workers").await.body;
    let its = workers["workers"].as_array().unwrap().iter().find(|one| one["worker"] == worker.name.as_str());
    assert_eq!(its.unwrap()["outdated"]["shop"], broken, "{workers}");
}

async fn lanes_are_listed_each_with_what_waits_in_it(fixture: &Fixture) {
    let crawl = fixture.crawl("lanes", "default", 2).await;
    let waiting = |lanes: &serde_json::Value| {
        let bulk = lanes["lanes"].as_array().unwrap().iter().find(|lane| lane["lane"] == "bulk");
        bulk.map(|lane| lane["messages"].clone())
    };
    let lanes = fixture.get("/api/v1/lanes").await.body;
    assert_eq!(waiting(&lanes), Some(2.into()), "{crawl:?}: {lanes}");
    let metrics = fixture.get("/metrics").await.body;
    let metrics = metrics.as_str().unwrap();
    assert!(metrics.lines().any(|line| line == "trawl_lane_messages{lane=\"bulk\"} 2"), "{metrics}");
}

async fn a_worker_that_is_asked_to_end_learns_it_with_its_next_sign_of_life(fixture: &Fixture) {
    let worker = fixture.worker();
    let drain = format!("/api/v1/workers/{}/drain", worker.name);
    assert_eq!(fixture.post(&drain).await.status, 404, "it has not shown that it lives");
    assert_eq!(worker.beat(|_| ()).await, BeatReply::GoOn);
    let viewer = fixture.request(Method::POST, &drain).bearer_auth(VIEWER);
    assert_eq!(fixture.send(viewer).await.status, 403);
    assert_eq!(worker.beat(|_| ()).await, BeatReply::GoOn);
    assert_eq!(fixture.post(&drain).await.body["draining"], true);
    assert_eq!(fixture.get("/api/v1/workers").await.body["workers"][0]["draining"], true);
    assert_eq!(worker.beat(|_| ()).await, BeatReply::Drain);
}

#[tokio::test]
async fn a_group_is_blocked_by_its_name() {
    let fixture = Fixture::embedded().await;
    let backend = Backend { settings: Arc::new(grouping("cdn")), ..fixture.backend.clone() };
    let fixture = fixture.again_over(backend).await;
    assert_eq!(fixture.post("/api/v1/hosts/@cdn/block").await.body["host"], "@cdn");
}

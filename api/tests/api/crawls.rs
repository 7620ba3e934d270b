//! Crawls: the list, a single crawl, and commands.

use std::time::{Duration, Instant};

use serde_json::json;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::names::CrawlRef;

use crate::fixture::{Fixture, page};

promises! {
    a_crawl_says_what_keeps_its_urls_waiting
    crawls_are_listed_a_page_at_a_time_the_newest_first
    crawls_are_found_by_spider_and_by_status
    a_crawl_tells_its_counters_and_its_hosts
    a_wait_ends_with_the_crawl
    a_wait_ends_with_its_time
    commands_to_a_crawl_are_carried_out_and_those_to_one_that_is_over_are_conflicts
    the_crawl_of_hand_published_urls_is_not_cancelled
    what_is_no_crawl_is_not_found
    urls_are_added_to_a_crawl_that_runs_which_ends_when_they_have
    a_crawl_whose_sources_are_being_read_is_not_ended_by_urls_that_are_added
    a_crawl_that_may_do_so_many_pages_does_no_more_when_urls_are_added
    what_is_no_url_or_for_no_crawl_that_runs_is_not_added
}

async fn crawls_are_listed_a_page_at_a_time_the_newest_first(fixture: &Fixture) {
    for id in ["one", "two", "three", "four", "five"] {
        fixture.crawl(id, id, 1).await;
    }
    let whole = fixture.get("/api/v1/crawls").await.body;
    let ids = |page: &serde_json::Value| -> Vec<String> {
        page["crawls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|crawl| crawl["crawl"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!((ids(&whole).len(), whole.get("next")), (5, None));
    let (mut listed, mut path) = (Vec::new(), "/api/v1/crawls?limit=2".to_owned());
    loop {
        let page = fixture.get(&path).await.body;
        listed.extend(ids(&page));
        let Some(next) = page["next"].as_str() else { break };
        assert_eq!(ids(&page).len(), 2);
        path = format!("/api/v1/crawls?limit=2&cursor={next}");
    }
    assert_eq!(listed, ids(&whole));
}

async fn crawls_are_found_by_spider_and_by_status(fixture: &Fixture) {
    fixture.crawl("one", "a", 1).await;
    fixture.crawl("two", "b", 0).await;
    for (query, found) in [
        ("spider=a", vec!["one"]),
        ("spider=c", vec![]),
        ("status=finished", vec!["two"]),
        ("status=running&spider=a", vec!["one"]),
        ("status=running&spider=b", vec![]),
        ("stalled=false", vec!["two", "one"]),
        ("stalled=true", vec![]),
    ] {
        let listed = fixture.get(&format!("/api/v1/crawls?{query}")).await.body;
        let ids: Vec<_> = listed["crawls"].as_array().unwrap().iter().map(|crawl| &crawl["crawl"]).collect();
        assert_eq!(ids, found, "{query}");
    }
}

async fn a_crawl_tells_its_counters_and_its_hosts(fixture: &Fixture) {
    fixture.crawl("one", "a", 3).await;
    fixture.worker().end_all(2, Terminal::Done).await;
    let crawl = fixture.get("/api/v1/crawls/one").await.body;
    let number = |name: &str| crawl[name].as_u64().unwrap();
    assert_eq!([number("admitted"), number("done"), number("pending")], [3, 2, 1]);
    assert_eq!((&crawl["spider"], &crawl["status"]), (&"a".into(), &"running".into()));
    assert!(crawl["started"].as_str().unwrap().ends_with('Z'));
    let hosts = fixture.get("/api/v1/crawls/one/hosts?limit=1").await.body;
    assert_eq!(hosts["hosts"][0]["host"], "one.example");
    assert_eq!(hosts["hosts"][0]["pending"], 1);
}

async fn a_wait_ends_with_the_crawl(fixture: &Fixture) {
    fixture.crawl("one", "a", 1).await;
    let worker = fixture.worker();
    let (waited, ()) =
        tokio::join!(fixture.get("/api/v1/crawls/one?wait=15s"), worker.end_all(1, Terminal::Done));
    assert_eq!((&waited.body["status"], &waited.body["done"]), (&"finished".into(), &1.into()));
    assert_eq!(fixture.get("/api/v1/crawls/one?wait=15s").await.body["status"], "finished", "at once");
}

async fn a_wait_ends_with_its_time(fixture: &Fixture) {
    fixture.crawl("one", "a", 1).await;
    let begun = Instant::now();
    assert_eq!(fixture.get("/api/v1/crawls/one?wait=50ms").await.body["status"], "running");
    assert!(begun.elapsed() >= Duration::from_millis(50));
    for wrong in ["61s", "soon", "-1s", "", "99999999999999999999y"] {
        let answer = fixture.get(&format!("/api/v1/crawls/one?wait={wrong}")).await;
        assert_eq!(answer.status, 400, "{wrong}");
    }
}

async fn commands_to_a_crawl_are_carried_out_and_those_to_one_that_is_over_are_conflicts(fixture: &Fixture) {
    fixture.crawl("one", "a", 2).await;
    for (command, status) in [
        ("pause", "paused"),
        ("pause", "paused"),
        ("resume", "running"),
        ("resume", "running"),
        ("cancel", "cancelled"),
        ("cancel", "cancelled"),
    ] {
        let answer = fixture.post(&format!("/api/v1/crawls/one/{command}")).await;
        assert_eq!((answer.status, &answer.body["status"]), (200, &status.into()), "{command}");
    }
    assert_eq!(fixture.get("/api/v1/crawls/one").await.body["cancelled"], 2);
    for command in ["pause", "resume"] {
        let answer = fixture.post(&format!("/api/v1/crawls/one/{command}")).await;
        assert_eq!((answer.status, &answer.body["type"]), (409, &"urn:problem-type:trawl:conflict".into()));
    }
}

async fn the_crawl_of_hand_published_urls_is_not_cancelled(fixture: &Fixture) {
    let CrawlRef { id, spider } = CrawlRef::adhoc();
    let (_, session) = fixture.session(id.as_str(), spider.as_str()).await;
    session.abandon().await.unwrap();
    assert_eq!(fixture.post("/api/v1/crawls/adhoc/cancel").await.status, 409);
    assert_eq!(fixture.get("/api/v1/crawls/adhoc").await.body["status"], "running");
}

async fn what_is_no_crawl_is_not_found(fixture: &Fixture) {
    for id in ["none", "UPPER", "a%20b", "%00", "%ff", "..%2f..%2fetc", "a%2Fb", &"x".repeat(5000)] {
        for path in ["", "/hosts", "/events"] {
            let answer = fixture.get(&format!("/api/v1/crawls/{id}{path}")).await;
            assert_eq!(answer.status, 404, "{id}{path}");
        }
        for command in ["pause", "resume", "cancel"] {
            assert_eq!(fixture.post(&format!("/api/v1/crawls/{id}/{command}")).await.status, 404, "{id}");
        }
    }
}

/// Adds URLs, and returns how many were new and how many were known.
async fn add(fixture: &Fixture, id: &str, urls: &[&str]) -> [u64; 2] {
    let answer = fixture.post_json(&format!("/api/v1/crawls/{id}/urls"), &json!({"urls": urls})).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    ["new", "known"].map(|name| answer.body[name].as_u64().unwrap())
}

async fn urls_are_added_to_a_crawl_that_runs_which_ends_when_they_have(fixture: &Fixture) {
    fixture.crawl("one", "a", 1).await;
    let urls = ["http://one.example/0", "http://one.example/new", "HTTP://one.example:80/new#top"];
    assert_eq!(add(fixture, "one", &urls).await, [1, 2]);
    assert_eq!(add(fixture, "one", &urls[1..]).await, [0, 2], "asking twice adds once");
    let worker = fixture.worker();
    worker.end_all(2, Terminal::Done).await;
    let crawl = fixture.get("/api/v1/crawls/one?wait=10s").await.body;
    assert_eq!((&crawl["status"], &crawl["done"]), (&"finished".into(), &2.into()));
}

async fn a_crawl_whose_sources_are_being_read_is_not_ended_by_urls_that_are_added(fixture: &Fixture) {
    let (_, session) = fixture.session("one", "a").await;
    assert_eq!(add(fixture, "one", &["http://one.example/0"]).await, [1, 0]);
    fixture.worker().end_all(1, Terminal::Done).await;
    let crawl = fixture.get("/api/v1/crawls/one").await.body;
    assert_eq!((&crawl["status"], &crawl["discovered"]), (&"running".into(), &false.into()));
    let new = trawl_common::ports::NewWork::seed(page("one", 1), Default::default());
    assert_eq!(session.admit(&[new]).await.unwrap(), [true]);
}

async fn a_crawl_that_may_do_so_many_pages_does_no_more_when_urls_are_added(fixture: &Fixture) {
    let max_pages = std::num::NonZeroU64::new(7);
    let terms = trawl_common::ports::Terms { max_pages, ..Default::default() };
    let crawl = fixture.crawl_with("one", "a", 1, terms).await;
    assert_eq!(add(fixture, "one", &["http://one.example/new"]).await, [1, 0]);
    assert_eq!(fixture.backend.stats.terms(&crawl).await.unwrap().max_pages, max_pages);
}

async fn what_is_no_url_or_for_no_crawl_that_runs_is_not_added(fixture: &Fixture) {
    fixture.crawl("one", "a", 1).await;
    fixture.crawl("two", "b", 0).await;
    for (id, body, status) in [
        ("one", json!({"urls": ["http://one.example/new", "ftp://one.example/"]}), 400),
        ("one", json!({"urls": [""]}), 400),
        ("one", json!({"urls": []}), 400),
        ("one", json!({"urls": "http://one.example/new"}), 400),
        ("one", json!({"urls": vec!["http://a.example/"; 10_001]}), 400),
        ("one", json!({}), 400),
        ("two", json!({"urls": ["http://one.example/new"]}), 409),
        ("none", json!({"urls": ["http://one.example/new"]}), 404),
    ] {
        let answer = fixture.post_json(&format!("/api/v1/crawls/{id}/urls"), &body).await;
        assert_eq!(answer.status, status, "{id} {}", answer.body);
    }
    assert_eq!(fixture.get("/api/v1/crawls/one").await.body["admitted"], 1);
}

async fn a_crawl_says_what_keeps_its_urls_waiting(fixture: &Fixture) {
    fixture.crawl("one", "a", 2).await;
    fixture.post("/api/v1/crawls/one/pause").await;
    assert_eq!(fixture.post("/api/v1/hosts/one.example/block").await.status, 200);
    let waits = fixture.get("/api/v1/crawls/one").await.body["waits"].clone();
    let waits: Vec<&str> = waits.as_array().unwrap().iter().map(|words| words.as_str().unwrap()).collect();
    assert!(waits.contains(&"it is paused: `trawl resume one`"), "{waits:?}");
    assert!(waits.iter().any(|words| words.starts_with("one.example is blocked")), "{waits:?}");
    assert_eq!(fixture.post("/api/v1/crawls/one/cancel").await.status, 200);
    let over = fixture.get("/api/v1/crawls/one").await.body;
    assert!(over["waits"].is_null(), "{over}");
}

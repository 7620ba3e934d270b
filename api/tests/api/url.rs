//! A single URL of a crawl.

use serde_json::{Value, json};
use trawl_common::frontier::outcome::Terminal;
use trawl_common::spider::item::Change;
use trawl_common::spider::page_history::{Tally, Validators, Visited};
use trawl_common::time::UnixMs;
use trawl_common::web::url::Fingerprint;

use crate::fixture::{Fixture, page};

promises! {
    a_url_tells_where_it_is_from_its_lane_to_its_end
    a_url_that_failed_is_told_with_its_dead_letter
    what_is_remembered_of_a_page_is_told
    a_page_that_a_crawl_fetched_says_what_came_of_it
    a_text_that_is_no_url_is_named
    a_request_is_told_with_how_it_asks_and_without_what_may_be_secret
}

async fn a_request_is_told_with_how_it_asks_and_without_what_may_be_secret(fixture: &Fixture) {
    fixture.crawl("one", "a", 1).await;
    let request = json!({
        "url": page("one", 0), "method": "POST", "body": "S3", "headers": {"Authorization": "S3"}, "cookies": [["id", "S3"]],
        "data": {"page": 2}, "retries": 1,
    });
    let urls = "/api/v1/crawls/one/urls";
    let added = fixture.post_json(urls, &json!({ "urls": [request, page("one", 0)] })).await;
    assert_eq!((&added.body["new"], &added.body["known"]), (&1.into(), &1.into()), "{}", added.body);
    let wrong = fixture.post_json(urls, &json!({ "urls": [{"url": page("one", 0), "metod": "S3"}] })).await;
    let detail = wrong.body["detail"].as_str().unwrap();
    assert!(
        wrong.status == 400 && detail.contains("did you mean `method`?") && !detail.contains("S3"),
        "{detail}"
    );
    let worker = fixture.worker();
    let claimed = worker.claim(2).await;
    let key = claimed.iter().find_map(|claimed| claimed.message.work.request()).unwrap().key.clone();
    let asks = json!({
        "method": "POST", "headers": ["authorization"], "cookies": ["id"], "body_bytes": 2, "data": {"page": 2},
        "priority": 0.0, "retries": 1,
    });
    let escaped = key.as_str().replace('#', "%23");
    let held = fixture.get(&format!("/api/v1/crawls/one/url?url={escaped}")).await.body;
    assert_eq!((&held["url"], &held["place"]), (&key.as_str().into(), &"held".into()), "{held}");
    assert_eq!(held["request"], asks);
    worker.end(claimed, Terminal::Failed).await;
    let failed = fixture.get(&format!("/api/v1/dead-letters?url={escaped}")).await.body;
    assert_eq!(failed["dead_letters"][0]["request"], asks, "{failed}");
    let listed = fixture.get("/api/v1/dead-letters").await.body;
    assert_eq!(listed["dead_letters"].as_array().unwrap().len(), 2);
    assert!(!listed.to_string().contains("S3"));
    assert_eq!(report(fixture, "one", 0).await["request"], Value::Null);
}

async fn report(fixture: &Fixture, id: &str, number: usize) -> Value {
    let answer = fixture.get(&format!("/api/v1/crawls/{id}/url?url={}", page(id, number))).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body
}

/// Returns the explanation in the report of a URL.
fn words_of(report: &Value) -> String {
    let words = report["words"].as_array().unwrap();
    words.iter().map(|words| words.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

async fn a_url_tells_where_it_is_from_its_lane_to_its_end(fixture: &Fixture) {
    fixture.crawl("one", "a", 1).await;
    let queued = report(fixture, "one", 0).await;
    assert_eq!((&queued["state"], &queued["place"]), (&"pending".into(), &"queued".into()), "{queued}");
    assert_eq!((&queued["attempts"], &queued["lane"]), (&0.into(), &"bulk".into()));
    assert_eq!((&queued["url"], &queued["page"]), (&page("one", 0).as_str().into(), &Value::Null));
    assert_eq!((&queued["robots"], &queued["host"]), (&"unknown".into(), &Value::Null));
    assert!(words_of(&queued).contains("It waits in the lane `bulk` for a worker"), "{queued}");
    let worker = fixture.worker();
    let claimed = worker.claim(1).await;
    let held = report(fixture, "one", 0).await;
    assert_eq!((&held["place"], &held["started"]), (&"held".into(), &false.into()), "{held}");
    assert_eq!(held["worker"], worker.name.as_str());
    assert!(words_of(&held).contains(&format!("The worker {} holds it", worker.name)), "{held}");
    worker.end(claimed, Terminal::Done).await;
    assert_eq!(report(fixture, "one", 0).await["state"], "ended");
    assert_eq!(report(fixture, "one", 1).await["state"], "unseen");
    fixture.crawl("two", "b", 0).await;
    let elsewhere = fixture.get(&format!("/api/v1/crawls/two/url?url={}", page("one", 0))).await.body;
    assert_eq!(elsewhere["state"], "unseen", "spiders do not mix");
}

async fn a_url_that_failed_is_told_with_its_dead_letter(fixture: &Fixture) {
    fixture.failed("one", "a", 1).await;
    let failed = report(fixture, "one", 0).await;
    assert_eq!(
        (&failed["state"], &failed["dead_letter"]["status"]),
        (&"failed".into(), &404.into()),
        "{failed}"
    );
    let letters = fixture.get("/api/v1/dead-letters?crawl=one").await.body;
    assert_eq!(failed["dead_letter"], letters["dead_letters"][0]);
}

async fn what_is_remembered_of_a_page_is_told(fixture: &Fixture) {
    let crawl = fixture.crawl("one", "a", 1).await;
    let visited = Visited {
        fetched_at: UnixMs(1_700_000_000_123),
        validators: Validators::default(),
        content: Fingerprint::from_text("x"),
        change: Change::Changed,
        depth: 2,
        items: Some(Tally::one_each([None, None].into_iter())),
        answer: Some("200 12 http://one.example/final".parse().unwrap()),
    };
    fixture.backend.pages.note(&crawl.spider, &[(page("one", 0), visited)]).await.unwrap();
    let report = report(fixture, "one", 0).await;
    let answer = json!({
        "fetched_at": "2023-11-14T22:13:20.123Z", "change": "changed", "depth": 2, "status": 200, "items": 2, "links": 12,
        "final_url": "http://one.example/final",
    });
    assert_eq!(report["page"], answer);
    let words = report["words"].to_string();
    assert!(
        words.contains("Its status was 200") && words.contains("2 items and 12 links to follow"),
        "{words}"
    );
}

async fn a_page_that_a_crawl_fetched_says_what_came_of_it(fixture: &Fixture) {
    let crawl = fixture.crawl("one", "a", 1).await;
    let worker = fixture.worker();
    let claimed = worker.claim(1).await;
    let during = UnixMs::now();
    worker.end(claimed, Terminal::Done).await;
    let unknown = report(fixture, "one", 0).await;
    assert_eq!((&unknown["state"], &unknown["outcome"]), (&"ended".into(), &Value::Null), "{unknown}");
    assert!(words_of(&unknown).contains("whose dedup is not `spider`"), "{unknown}");
    for (fetched_at, answer, outcome) in [
        (during, "200 0", json!("done")),
        (during, "304 0", json!("skipped")),
        (UnixMs(1_700_000_000_123), "200 0", Value::Null),
    ] {
        let visited = Visited {
            fetched_at,
            validators: Validators::default(),
            content: Fingerprint::from_text("x"),
            change: Change::New,
            depth: 0,
            items: Some(Tally::default()),
            answer: Some(answer.parse().unwrap()),
        };
        fixture.backend.pages.note(&crawl.spider, &[(page("one", 0), visited)]).await.unwrap();
        let known = report(fixture, "one", 0).await;
        assert_eq!((&known["state"], &known["outcome"]), (&"ended".into(), &outcome), "{known}");
    }
}

async fn a_text_that_is_no_url_is_named(fixture: &Fixture) {
    fixture.crawl("one", "a", 1).await;
    for (query, status) in [
        ("?url=HTTP%3A%2F%2Fone.example%3A80%2F0%23top", 200),
        ("", 400),
        ("?url=", 400),
        ("?url=ftp%3A%2F%2Fone.example%2F", 400),
        ("?url=http%3A%2F%2Fone.example%2F&more=1", 400),
    ] {
        let answer = fixture.get(&format!("/api/v1/crawls/one/url{query}")).await;
        assert_eq!(answer.status, status, "{query}: {}", answer.body);
    }
    assert_eq!(fixture.get("/api/v1/crawls/none/url?url=http://one.example/").await.status, 404);
}

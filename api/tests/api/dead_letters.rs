//! Dead letters: listed, replayed, purged.

use serde_json::{Value, json};

use crate::fixture::{Fixture, page};

promises! {
    dead_letters_are_listed_page_by_page_and_looking_takes_none_away
    dead_letters_are_found_by_what_they_are
    what_is_sent_again_leaves_the_list
    those_of_a_crawl_that_is_over_go_into_a_successor_which_can_end
    what_is_purged_is_gone
    nothing_is_touched_unless_it_is_said_which
}

/// Returns the URLs on all pages of a listing.
async fn all(fixture: &Fixture, query: &str) -> Vec<String> {
    let (mut urls, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = fixture.get(&format!("/api/v1/dead-letters?{query}{cursor}")).await;
        assert_eq!(page.status, 200, "{}", page.body);
        let letters = page.body["dead_letters"].as_array().unwrap();
        urls.extend(letters.iter().map(|letter| letter["url"].as_str().unwrap().to_owned()));
        let Some(next) = page.body["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    urls.sort();
    let counted = fixture.get(&format!("/api/v1/dead-letters/count?{query}")).await.body;
    assert_eq!(counted, json!({ "count": urls.len(), "more": false }), "{query}");
    urls
}

async fn dead_letters_are_listed_page_by_page_and_looking_takes_none_away(fixture: &Fixture) {
    fixture.failed("one", "a", 2).await;
    fixture.failed("two", "b", 1).await;
    fixture.crawl("three", "c", 1).await;
    for _ in 0..2 {
        assert_eq!(
            all(fixture, "").await,
            ["http://one.example/0", "http://one.example/1", "http://two.example/0"]
        );
    }
    let letter = &fixture.get("/api/v1/dead-letters?crawl=two").await.body["dead_letters"][0];
    let expected =
        [("crawl", json!("two")), ("spider", json!("b")), ("reason", json!("final")), ("status", json!(404))];
    for (member, value) in expected {
        assert_eq!(letter[member], value, "{letter}");
    }
}

async fn dead_letters_are_found_by_what_they_are(fixture: &Fixture) {
    fixture.failed("one", "a", 1).await;
    fixture.failed("two", "b", 1).await;
    let (one, two) = (vec!["http://one.example/0".to_owned()], vec!["http://two.example/0".to_owned()]);
    for (query, found) in [
        ("crawl=one", &one),
        ("spider=b", &two),
        ("host=ONE.example", &one),
        ("url=http://two.example:80/0", &two),
        ("url=http://two.example/0&crawl=one", &vec![]),
        ("reason=retries", &vec![]),
        ("older_than=1h", &vec![]),
        ("older_than=0s&reason=final&host=two.example", &two),
    ] {
        assert_eq!(all(fixture, query).await, *found, "{query}");
    }
    for wrong in ["reason=x", "older_than=soon", "crawl=NO", "cursor=x", "color=red", "crawl=one&crawl=two"] {
        assert_eq!(fixture.get(&format!("/api/v1/dead-letters?{wrong}")).await.status, 400, "{wrong}");
    }
    assert_eq!(fixture.get("/api/v1/dead-letters?crawl=none").await.status, 404);
}

async fn replay(fixture: &Fixture, selection: &Value) -> Value {
    let answer = fixture.post_json("/api/v1/dead-letters/replay", selection).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body
}

async fn what_is_sent_again_leaves_the_list(fixture: &Fixture) {
    let (_, session) = fixture.session("one", "a").await;
    let new = trawl_common::ports::NewWork::seed(page("one", 0), Default::default());
    session.admit(&[new]).await.unwrap();
    fixture.worker().end_all(1, trawl_common::frontier::outcome::Terminal::Failed).await;
    let sent = replay(fixture, &json!({"urls": ["http://one.example/0"]})).await;
    assert_eq!(sent, json!({"sent": 1, "crawls": ["one"]}));
    assert_eq!(all(fixture, "").await, Vec::<String>::new());
    let crawl = fixture.get("/api/v1/crawls/one").await.body;
    assert_eq!((&crawl["pending"], &crawl["failed"]), (&1.into(), &0.into()));
    session.close().await.unwrap();
}

async fn those_of_a_crawl_that_is_over_go_into_a_successor_which_can_end(fixture: &Fixture) {
    fixture.failed("one", "a", 2).await;
    fixture.failed("two", "b", 2).await;
    let sent = replay(fixture, &json!({"reason": "final", "all": false})).await;
    assert_eq!(sent, json!({"sent": 4, "crawls": ["one.r1", "two.r1"]}));
    fixture.worker().end_all(4, trawl_common::frontier::outcome::Terminal::Done).await;
    for id in ["one.r1", "two.r1"] {
        let crawl = fixture.get(&format!("/api/v1/crawls/{id}?wait=10s")).await.body;
        assert_eq!((&crawl["status"], &crawl["done"]), (&"finished".into(), &2.into()));
    }
}

async fn what_is_purged_is_gone(fixture: &Fixture) {
    fixture.failed("one", "a", 3).await;
    let purge = |selection: Value| async move {
        fixture.post_json("/api/v1/dead-letters/purge", &selection).await.body
    };
    assert_eq!(purge(json!({"urls": ["http://one.example/1"]})).await, json!({"purged": 1}));
    assert_eq!(all(fixture, "").await, ["http://one.example/0", "http://one.example/2"]);
    assert_eq!(purge(json!({"all": true})).await, json!({"purged": 2}));
    assert_eq!(all(fixture, "").await, Vec::<String>::new());
    assert_eq!(fixture.get("/api/v1/crawls/one").await.body["failed"], 3, "the counters stay");
}

async fn nothing_is_touched_unless_it_is_said_which(fixture: &Fixture) {
    fixture.failed("one", "a", 1).await;
    for command in ["replay", "purge"] {
        for unclear in [
            json!({}),
            json!({"urls": []}),
            json!({"all": true, "reason": "final"}),
            json!({"all": "yes"}),
            json!({"reasons": "final"}),
            json!({"older_than": 5}),
            json!([]),
            json!(null),
        ] {
            let answer = fixture.post_json(&format!("/api/v1/dead-letters/{command}"), &unclear).await;
            assert_eq!(answer.status, 400, "{unclear}");
        }
    }
    assert_eq!(all(fixture, "").await.len(), 1);
}

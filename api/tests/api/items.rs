//! The items of a crawl as a fleet stores them.

use reqwest::Method;
use reqwest::header::ACCEPT;
use serde_json::{Value, json};
use trawl_common::frontier::outcome::Terminal;
use trawl_common::names::CrawlRef;
use trawl_common::ports::Page;
use trawl_common::spider::item::Item;

use crate::fixture::{Fixture, page};

/// Stores items for these pages of a crawl, as a worker does.
async fn store(fixture: &Fixture, crawl: &CrawlRef, numbers: std::ops::Range<usize>) {
    let item = |number: usize| Item {
        id: number.to_string(),
        url: page(crawl.id.as_str(), number).to_string(),
        crawl: crawl.id.clone(),
        spider: crawl.spider.clone(),
        fetched_at: "2026-01-01T00:00:00.000Z".to_owned(),
        status: 200,
        depth: 0,
        item: None,
        change: None,
        final_url: None,
        referrer: None,
        path: None,
        fields: [("n".to_owned(), json!(number))].into_iter().collect(),
    };
    let page = |number| Page {
        key: page(crawl.id.as_str(), number).into(),
        crawl: crawl.clone(),
        referrer: None,
        items: vec![item(number)],
        exchange: None,
    };
    let pages: Vec<Page> = numbers.map(page).collect();
    fixture.broker.as_ref().unwrap().publish_items(&pages).await.unwrap();
}

fn numbers(page: &Value) -> Vec<u64> {
    page["items"].as_array().unwrap().iter().map(|item| item["fields"]["n"].as_u64().unwrap()).collect()
}

/// Returns the page of crawl `one` that follows `last`.
async fn after(fixture: &Fixture, last: &Value, limit: usize) -> Value {
    let next = last["next"].as_str().unwrap();
    fixture.get(&format!("/api/v1/crawls/one/items?limit={limit}&cursor={next}")).await.body
}

#[tokio::test]
async fn items_are_read_page_by_page_without_those_of_other_crawls() {
    let fixture = Fixture::fleet().await;
    let (one, two) = (fixture.crawl("one", "a", 0).await, fixture.crawl("two", "a", 0).await);
    for part in 0..5 {
        store(&fixture, &one, part * 3..part * 3 + 3).await;
        store(&fixture, &two, 0..2).await;
    }
    let mut page = fixture.get("/api/v1/crawls/one/items?limit=4").await.body;
    let mut found = numbers(&page);
    assert_eq!(found, [0, 1, 2, 3]);
    assert_eq!(page["items"][0]["url"], "http://one.example/0");
    while page["next"].is_string() {
        page = after(&fixture, &page, 4).await;
        found.extend(numbers(&page));
    }
    assert_eq!(found, (0..15).collect::<Vec<u64>>());
}

#[tokio::test]
async fn whoever_has_read_all_goes_on_with_what_comes_until_the_crawl_is_over() {
    let fixture = Fixture::fleet().await;
    let one = fixture.crawl("one", "a", 1).await;
    let nothing = fixture.get("/api/v1/crawls/one/items").await.body;
    assert_eq!(numbers(&nothing), [0; 0]);
    store(&fixture, &one, 0..2).await;
    let some = after(&fixture, &nothing, 100).await;
    assert_eq!(numbers(&some), [0, 1]);
    assert_eq!(numbers(&after(&fixture, &some, 100).await), [0; 0]);
    fixture.worker().end_all(1, Terminal::Done).await;
    let rest = after(&fixture, &some, 100).await;
    assert_eq!((numbers(&rest), rest.get("next")), (vec![], None));
    let beyond = trawl_common::ports::ItemsFrom::Place(1_000_000);
    let items = fixture.backend.items.as_ref().unwrap();
    assert!(items.read(&one.id, beyond).await.is_err(), "the stream has no such place");
    assert_eq!(fixture.get("/api/v1/crawls/one/items?cursor=x").await.status, 400);
    assert_eq!(fixture.get("/api/v1/crawls/none/items").await.status, 404);
}

#[tokio::test]
async fn whoever_accepts_lines_is_sent_all_items_one_a_line() {
    let fixture = Fixture::fleet().await;
    let one = fixture.crawl("one", "a", 1).await;
    store(&fixture, &one, 0..300).await;
    let request = fixture.operator(Method::GET, "/api/v1/crawls/one/items");
    let answer = fixture.send(request.header(ACCEPT, "text/html, application/jsonl;q=0.9")).await;
    assert_eq!(answer.headers["content-type"], "application/jsonl");
    let lines = answer.body.as_str().unwrap().lines().map(|line| serde_json::from_str::<Item>(line).unwrap());
    assert!(lines.map(|item| item.id).eq((0..300).map(|number| number.to_string())));
}

#[tokio::test]
async fn the_items_of_a_state_file_are_said_to_be_in_files() {
    let fixture = Fixture::embedded().await;
    fixture.crawl("one", "a", 0).await;
    let answer = fixture.get("/api/v1/crawls/one/items").await;
    assert_eq!((answer.status, &answer.body["type"]), (501, &"urn:problem-type:trawl:not-kept".into()));
    assert!(answer.body["detail"].as_str().unwrap().contains("--out"));
}

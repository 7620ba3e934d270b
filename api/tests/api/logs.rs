//! The log of the fleet.

use reqwest::header::ACCEPT;
use reqwest::{Method, Response};
use serde_json::Value;
use trawl_common::logs::{LogEntry, LogLevel};
use trawl_common::names::CrawlRef;

use crate::fixture::{Fixture, VIEWER};

promises! {
    entries_are_listed_a_page_at_a_time_the_last_first
    entries_are_found_by_what_they_are_about
    all_entries_come_as_lines
    whoever_follows_gets_what_comes_and_goes_on_where_the_connection_broke
    followers_of_the_log_are_let_go_when_the_api_stops
}

async fn append(fixture: &Fixture, level: LogLevel, texts: &[&str]) {
    let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: "docs".parse().unwrap() };
    let entry = |text: &&str| {
        LogEntry::new(&"w-1".parse().unwrap(), level, *text)
            .in_crawl(&crawl)
            .with_host("a.example")
            .about("http://a.example/x?a=1&b")
            .of_class("http")
    };
    fixture.backend.logs.append(&texts.iter().map(entry).collect::<Vec<_>>()).await.unwrap();
}

fn texts(body: &Value) -> Vec<&str> {
    body["entries"].as_array().unwrap().iter().map(|entry| entry["message"].as_str().unwrap()).collect()
}

async fn entries_are_listed_a_page_at_a_time_the_last_first(fixture: &Fixture) {
    append(fixture, LogLevel::Error, &["one", "two\n at main", "three"]).await;
    let path = "/api/v1/logs?limit=2";
    let first = fixture.send(fixture.request(Method::GET, path).bearer_auth(VIEWER)).await.body;
    assert_eq!(texts(&first), ["three", "two\n at main"]);
    let entry = &first["entries"][0];
    for (name, value) in [
        ("level", "error"),
        ("worker", "w-1"),
        ("spider", "docs"),
        ("crawl", "c1"),
        ("host", "a.example"),
        ("key", "http://a.example/x?a=1&b"),
        ("class", "http"),
    ] {
        assert_eq!(entry[name], value, "{name}");
    }
    assert!(entry["time"].as_str().unwrap().ends_with('Z'), "{entry}");
    let next = first["next"].as_str().unwrap();
    let second = fixture.get(&format!("{path}&cursor={next}")).await.body;
    assert_eq!((texts(&second), second["next"].is_null()), (vec!["one"], true));
    assert_eq!(fixture.get("/api/v1/logs?cursor=x").await.status, 400);
}

async fn entries_are_found_by_what_they_are_about(fixture: &Fixture) {
    append(fixture, LogLevel::Error, &["failed"]).await;
    append(fixture, LogLevel::Debug, &["tried again"]).await;
    for (query, found) in [
        ("", vec!["tried again", "failed"]),
        ("?level=error", vec!["failed"]),
        ("?level=trace&crawl=c1&spider=docs&host=A.example&since=1h", vec!["tried again", "failed"]),
        ("?task=http%3A%2F%2Fa.example%2Fx%3Fa%3D1%26b&level=warn", vec!["failed"]),
        ("?crawl=c2", vec![]),
        ("?host=b.example", vec![]),
        ("?task=http%3A%2F%2Fa.example%2F", vec![]),
    ] {
        assert_eq!(texts(&fixture.get(&format!("/api/v1/logs{query}")).await.body), found, "{query}");
    }
    for query in ["?level=loud", "?since=long", "?crawl=NO", "?other=1", "?limit=0"] {
        assert_eq!(fixture.get(&format!("/api/v1/logs{query}")).await.status, 400, "{query}");
    }
}

async fn all_entries_come_as_lines(fixture: &Fixture) {
    append(fixture, LogLevel::Error, &["one\u{e4}\nline", "two"]).await;
    let request = fixture.operator(Method::GET, "/api/v1/logs").header(ACCEPT, "application/jsonl");
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/jsonl");
    let text = String::from_utf8(response.bytes().await.unwrap().to_vec()).unwrap();
    let found: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (found.len(), &found[0]["message"], &found[1]["message"]),
        (2, &"two".into(), &"one\u{e4}\nline".into())
    );
}

/// The entries sent to a client that follows the log.
struct Following {
    response: Response,
    text: String,
}

impl Following {
    async fn new(fixture: &Fixture, query: &str, last: Option<&str>) -> Self {
        let request = fixture.operator(Method::GET, &format!("/api/v1/logs{query}"));
        let request = request.header(ACCEPT, "text/event-stream");
        let request = last.iter().fold(request, |request, last| request.header("last-event-id", *last));
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// Returns the ID and the message of the next entry, or `None` at the end.
    async fn next(&mut self) -> Option<(String, String)> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let field =
                    |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                let found = (field("event: "), field("id: "), field("data: "));
                self.text = rest.to_owned();
                if let (Some(name), Some(id), Some(data)) = found {
                    assert_eq!(name, "entry");
                    let entry: Value = serde_json::from_str(&data).unwrap();
                    return Some((id, entry["message"].as_str().unwrap().to_owned()));
                }
                continue;
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

async fn whoever_follows_gets_what_comes_and_goes_on_where_the_connection_broke(fixture: &Fixture) {
    append(fixture, LogLevel::Error, &["before"]).await;
    let (mut one, mut two) =
        (Following::new(fixture, "", None).await, Following::new(fixture, "?level=error", None).await);
    append(fixture, LogLevel::Debug, &["tried again\nline"]).await;
    append(fixture, LogLevel::Error, &["failed"]).await;
    let (id, text) = one.next().await.unwrap();
    assert_eq!(text, "tried again\nline");
    assert_eq!(
        (one.next().await.unwrap().1, two.next().await.unwrap().1),
        ("failed".into(), "failed".into())
    );
    drop(one);
    let mut again = Following::new(fixture, "", Some(&id)).await;
    assert_eq!(again.next().await.unwrap().1, "failed");
}

async fn followers_of_the_log_are_let_go_when_the_api_stops(fixture: &Fixture) {
    let mut following = Following::new(fixture, "", None).await;
    fixture.stop();
    assert_eq!(following.next().await, None);
}

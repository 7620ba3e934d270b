//! The event stream of a crawl.

use reqwest::{Method, Response};
use serde_json::Value;
use trawl_common::frontier::outcome::Terminal;

use crate::fixture::Fixture;

promises! {
    whoever_follows_a_crawl_hears_of_each_change_and_last_of_its_end
    a_crawl_that_is_over_tells_so_at_once
    followers_are_let_go_when_the_api_stops
}

/// The updates of a crawl.
pub(crate) struct Events {
    response: Response,
    text: String,
}

impl Events {
    async fn new(fixture: &Fixture, id: &str) -> Self {
        Self::of_path(fixture, &format!("/api/v1/crawls/{id}")).await
    }

    /// Follows the crawl at this path.
    pub(crate) async fn of_path(fixture: &Fixture, path: &str) -> Self {
        let response = fixture.operator(Method::GET, &format!("{path}/events")).send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// Returns the name and the data of the next event, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let field =
                    |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                let found = field("event: ").zip(field("data: "));
                self.text = rest.to_owned();
                if let Some((name, data)) = found {
                    return Some((name, serde_json::from_str(&data).unwrap()));
                }
                continue;
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

async fn whoever_follows_a_crawl_hears_of_each_change_and_last_of_its_end(fixture: &Fixture) {
    fixture.crawl("one", "a", 2).await;
    let (mut first, mut second) = (Events::new(fixture, "one").await, Events::new(fixture, "one").await);
    let worker = fixture.worker();
    for (events, is_last) in [(&mut first, false), (&mut second, false)] {
        let (name, crawl) = events.next().await.unwrap();
        assert_eq!((name.as_str(), &crawl["pending"], is_last), ("progress", &2.into(), false));
    }
    worker.end_all(1, Terminal::Done).await;
    let (name, crawl) = first.next().await.unwrap();
    assert_eq!((name.as_str(), &crawl["done"]), ("progress", &1.into()));
    worker.end_all(1, Terminal::Done).await;
    let (name, crawl) = first.next().await.unwrap();
    assert_eq!((name.as_str(), &crawl["status"]), ("end", &"finished".into()));
    assert_eq!(first.next().await, None);
    let mut last = None;
    while let Some((name, _)) = second.next().await {
        last = Some(name);
    }
    assert_eq!(last.as_deref(), Some("end"));
}

async fn a_crawl_that_is_over_tells_so_at_once(fixture: &Fixture) {
    fixture.crawl("one", "a", 0).await;
    let mut events = Events::new(fixture, "one").await;
    assert_eq!(events.next().await.unwrap().0, "end");
    assert_eq!(events.next().await, None);
}

async fn followers_are_let_go_when_the_api_stops(fixture: &Fixture) {
    fixture.crawl("one", "a", 1).await;
    let mut events = Events::new(fixture, "one").await;
    assert_eq!(events.next().await.unwrap().0, "progress");
    fixture.stop();
    assert_eq!(events.next().await, None);
}

//! The log of the fleet.

use trawl_common::logs::{LogEntry, LogLevel};
use trawl_common::names::CrawlRef;

use crate::fixture::Fixture;

const ID: &str = "20260101-120000-a1b2c3";

async fn append(console: &Fixture, level: LogLevel, text: &str) {
    let crawl = CrawlRef { id: ID.parse().unwrap(), spider: "docs".parse().unwrap() };
    let entry = LogEntry::new(&"w-1".parse().unwrap(), level, text).in_crawl(&crawl);
    let entry = entry.with_host("a.example").about("http://a.example/?a=1&b").of_class("http");
    console.backend.logs.append(&[entry]).await.unwrap();
}

#[tokio::test]
async fn entries_are_found_and_long_ones_are_folded() {
    let console = Fixture::open().await;
    append(&console, LogLevel::Error, "it broke\n  at main <script>alert(1)</script>").await;
    append(&console, LogLevel::Debug, "tried again").await;
    let person = console.nobody();
    let all = person.get("/logs").await;
    assert_eq!(all.text.matches("<th scope=\"row\"").count(), 2, "{}", all.text);
    assert!(all.has("<summary>it broke</summary>") && all.has("  at main &#"), "{}", all.text);
    assert!(!all.has("<script>alert") && all.has(" data-live"), "{}", all.text);
    assert!(all.has(&format!("/crawls/{ID}/url?url=http%3A%2F%2Fa.example%2F%3Fa%3D1%26b")), "{}", all.text);
    let graver = person.get("/logs?level=warn&host=&crawl=&spider=&task=").await;
    assert!(graver.has("it broke") && !graver.has("tried again"), "{}", graver.text);
    let none = person.get("/logs?host=b.example").await;
    assert!(none.has("Nothing in the log fits."), "{}", none.text);
    assert_eq!(person.get("/logs?level=loud").await.status, 400);
}

#[tokio::test]
async fn a_long_log_comes_in_pages_of_which_the_first_updates_itself() {
    let console = Fixture::open().await;
    for number in 0..101 {
        append(&console, LogLevel::Error, &format!("failure {number}.")).await;
    }
    let person = console.nobody();
    let first = person.get("/logs?level=error").await;
    assert!(first.has("failure 100.") && !first.has("failure 0."), "{}", first.text);
    let (_, next) = first.text.split_once("rel=\"next\" href=\"").unwrap();
    let next = next.split_once('"').unwrap().0.replace("&#38;", "&").replace("&amp;", "&");
    let second = person.get(&next).await;
    assert!(second.has("failure 0.") && !second.has("failure 100.") && !second.has(" data-live"), "{next}");
}

#[tokio::test]
async fn a_crawl_and_a_dead_letter_lead_to_their_log() {
    let console = Fixture::open().await;
    console.failed(ID, 1, "not found").await;
    let person = console.nobody();
    assert!(person.get(&format!("/crawls/{ID}")).await.has(&format!("href=\"/logs?crawl={ID}\"")));
    let dead_letter =
        person.get(&format!("/dead-letters/one?crawl={ID}&url=http%3A%2F%2F{ID}.example%2F0")).await;
    assert!(
        dead_letter.has(&format!("/logs?crawl={ID}&amp;task=http%3A//{ID}.example/0")),
        "{}",
        dead_letter.text
    );
}

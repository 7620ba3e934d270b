//! Dead letters: found, read, replayed, purged.

use crate::fixture::{Fixture, OPERATOR};

const ONE: &str = "20260101-120000-a1b2c3";
const OTHER: &str = "20260102-120000-a1b2c3";

#[tokio::test]
async fn dead_letters_are_found_by_crawl_host_and_reason() {
    let console = Fixture::fleet().await;
    console.failed(ONE, 2, "not found").await;
    console.failed(OTHER, 1, "gone").await;
    let anna = console.log_in(OPERATOR).await;
    let rows = async |query: &str| {
        let shown = anna.get(&format!("/dead-letters{query}")).await;
        assert_eq!(shown.status, 200, "{}", shown.text);
        shown.text.matches("<th scope=\"row\"").count()
    };
    assert_eq!(rows(&format!("?crawl={ONE}")).await, 2);
    assert_eq!(rows(&format!("?host={OTHER}.example&reason=")).await, 1);
    assert_eq!(rows("?reason=poison").await, 0);
    let all = anna.get("/dead-letters").await;
    assert!(all.has("<summary><h2>http 404</h2> <span class=\"quiet\">3</span>"), "{}", all.text);
}

#[tokio::test]
async fn replaying_states_how_many_and_asks_before_it_sends_them() {
    let console = Fixture::fleet().await;
    let crawl = console.failed(ONE, 2, "not found").await;
    console.failed(OTHER, 1, "gone").await;
    let anna = console.log_in(OPERATOR).await;
    let path = format!("/dead-letters/replay?crawl={ONE}");
    let question = anna.get(&path).await;
    assert!(question.has("Replay 2 dead letters?"), "{}", question.text);
    assert_eq!(console.pending(&crawl).await, 0);
    let shown = anna.submit(&path, "/dead-letters/replay", &[]).await;
    assert!(shown.has("2 dead letters were sent again."), "{}", shown.text);
    assert!(!anna.get(&format!("/dead-letters?crawl={ONE}")).await.has("<th scope=\"row\""));
    assert!(anna.get(&format!("/dead-letters?crawl={OTHER}")).await.has("<th scope=\"row\""));
    let again = anna.get(&path).await;
    assert_eq!(again.status, 400, "there is nothing to ask any more");
}

#[tokio::test]
async fn one_dead_letter_is_read_and_purged_alone() {
    let console = Fixture::open().await;
    console.failed(ONE, 3, "a \u{ab}reason\u{bb} of its own").await;
    let one = format!("crawl={ONE}&url=http%3A%2F%2F{ONE}.example%2F1");
    let person = console.nobody();
    let shown = person.get(&format!("/dead-letters/one?{one}")).await;
    assert!(shown.has("a \u{ab}reason\u{bb} of its own") && shown.has("404"), "{}", shown.text);
    let question = person.get(&format!("/dead-letters/purge?{one}")).await;
    assert!(question.has("Purge 1 dead letter?"), "{}", question.text);
    let shown = person.submit(&format!("/dead-letters/purge?{one}"), "/dead-letters/purge", &[]).await;
    assert!(shown.has("1 dead letter was taken out for good."), "{}", shown.text);
    let left = person.get("/dead-letters").await;
    assert_eq!(left.text.matches("<th scope=\"row\"").count(), 2);
}

#[tokio::test]
async fn ten_thousand_dead_letters_come_in_pages_and_are_all_counted() {
    let console = Fixture::fleet().await;
    console.failed(ONE, 10_000, "not found").await;
    let anna = console.log_in(OPERATOR).await;
    let (mut path, mut rows, mut pages) = ("/dead-letters".to_owned(), 0, 0);
    loop {
        let shown = anna.get(&path).await;
        let here = shown.text.matches("<th scope=\"row\"").count();
        assert!(here <= 500);
        (rows, pages) = (rows + here, pages + 1);
        match shown.text.split("rel=\"next\" href=\"").nth(1) {
            Some(next) => path = next.split('"').next().unwrap().replace("&#38;", "&"),
            None => break,
        }
    }
    assert!(rows >= 10_000 && pages >= 20, "{rows} on {pages} pages");
    assert!(anna.get("/dead-letters/purge").await.has("Purge 10,000 dead letters?"));
}

//! Crawls: watched, paused, cancelled.

use tokio::time::timeout;

use crate::fixture::{Fixture, LIMIT, OPERATOR, page};

const ID: &str = "20260101-120000-a1b2c3";

#[tokio::test]
async fn a_crawl_is_shown_with_its_counters_hosts_and_reasons() {
    let console = Fixture::fleet().await;
    console.failed(ID, 3, "not found").await;
    let anna = console.log_in(OPERATOR).await;
    let shown = anna.get(&format!("/crawls/{ID}")).await;
    for text in
        ["finished", "3 of 3 URLs have ended (100 %)", &format!("{ID}.example"), ">http</a></td>", "spider"]
    {
        assert!(shown.has(text), "{text}: {}", shown.text);
    }
    assert!(!shown.has("data-live"), "one that is over changes no more");
    assert!(!shown.has(">Pause") && !shown.has("Cancel…"), "nor can anything be done to it");
    assert!(anna.get("/").await.has(ID));
    assert!(anna.get("/crawls?status=finished").await.has(ID));
    assert!(!anna.get("/crawls?status=running").await.has(ID));
    let stalled = anna.get("/crawls?status=stalled").await;
    assert!(stalled.status == 200 && !stalled.has(ID), "{}", stalled.text);
}

#[tokio::test]
async fn a_crawl_is_paused_resumed_and_after_a_question_cancelled() {
    let console = Fixture::fleet().await;
    let crawl = console.crawl(ID, 2).await;
    let anna = console.log_in(OPERATOR).await;
    let path = format!("/crawls/{ID}");
    assert!(anna.get(&path).await.has("data-live"));
    let shown = anna.submit(&path, &format!("{path}/pause"), &[]).await;
    assert_eq!(shown.location(), path);
    assert!(anna.get(&path).await.has("status paused"));
    anna.submit(&path, &format!("{path}/resume"), &[]).await;
    assert!(anna.get(&path).await.has("status running"));
    let question = anna.get(&format!("{path}/cancel")).await;
    assert!(question.has("2 URLs will not be fetched any more"), "{}", question.text);
    assert_eq!(console.pending(&crawl).await, 2, "a question does nothing");
    let shown = anna.submit(&format!("{path}/cancel"), &format!("{path}/cancel"), &[]).await;
    assert_eq!(shown.location(), path);
    assert!(anna.get(&path).await.has("status cancelled"));
    assert_eq!(console.pending(&crawl).await, 0);
    let again = anna.submit(&format!("{path}/cancel"), &format!("{path}/cancel"), &[]).await;
    assert_eq!(again.status, 303, "to cancel it again changes nothing: {}", again.text);
}

#[tokio::test]
async fn the_overview_says_what_is_amiss_and_what_to_do() {
    let console = Fixture::fleet().await;
    let anna = console.log_in(OPERATOR).await;
    let well = anna.get("/").await;
    assert!(well.has("Nothing is amiss: nothing was asked for yet"), "{}", well.text);
    console.failed("20260102-120000-a1b2c3", 30, "not found").await;
    // Lists of crawls may be a second old.
    let overview_with = async |text: &str| {
        loop {
            let shown = anna.get("/").await;
            if shown.has(text) {
                return shown;
            }
        }
    };
    let failing = timeout(LIMIT, overview_with("mostly failed")).await.expect("the crawl is listed soon");
    assert!(failing.has("30 of 30 URLs (http)"), "{}", failing.text);
    console.crawl(ID, 2).await;
    let says = "no worker lives: start one with <code>worker</code>";
    let waiting = timeout(LIMIT, overview_with(says)).await.expect("the crawl is listed soon");
    assert!(!waiting.has("Nothing is amiss"), "{}", waiting.text);
    assert!(anna.get("/?charts=day").await.has("24 h ago"));
}

#[tokio::test]
async fn a_long_list_of_crawls_comes_in_pages() {
    let console = Fixture::open().await;
    for number in 0..60 {
        console.crawl(&format!("20260101-1200{number:02}-a1b2c3"), 1).await;
    }
    let first = console.nobody().get("/crawls").await;
    let next = first.text.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    let second = console.nobody().get(&next.replace("&#38;", "&")).await;
    let rows = |text: &str| text.matches("<th scope=\"row\"").count();
    assert_eq!((rows(&first.text), rows(&second.text)), (50, 10));
    assert!(second.has("This is the last page"));
}

#[tokio::test]
async fn a_url_is_found_in_its_crawl_in_any_form() {
    let console = Fixture::fleet().await;
    console.crawl(ID, 1).await;
    let anna = console.log_in(OPERATOR).await;
    let ask = async |url: &str| {
        let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("url", url).finish();
        anna.get(&format!("/crawls/{ID}/url?{query}")).await
    };
    let shown = ask(&page(ID, 0).to_string().replace("http:", "HTTP:")).await;
    assert!(shown.has("It waits in the lane `bulk` for a worker") && shown.has("bulk"), "{}", shown.text);
    assert!(ask("http://elsewhere.example/").await.has("has not seen it"));
    let shown = ask("no url").await;
    assert_eq!(shown.status, 400);
}

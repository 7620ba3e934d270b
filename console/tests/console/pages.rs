//! Properties of all pages.

use reqwest::Method;

use crate::fixture::{Fixture, OPERATOR};

const ID: &str = "20260101-120000-a1b2c3";

#[tokio::test]
async fn no_page_runs_or_loads_what_is_not_the_consoles_own() {
    let console = Fixture::open().await;
    console.crawl(ID, 1).await;
    let crawl = format!("/crawls/{ID}");
    for path in [
        "/",
        "/crawls",
        &crawl,
        "/jobs",
        "/dead-letters",
        "/hosts",
        "/workers",
        "/tasks",
        "/tasks/new",
        "/tasks/task:0123456789abcdef0123456789abcdef",
        "/tasks/cancel?crawl=x",
        "/logs",
        "/spiders",
        "/spiders/deploy",
        "/schedules",
        "/runners",
        "/crawls/new",
        "/nothing",
    ] {
        let shown = console.nobody().get(path).await;
        assert_eq!(shown.status, if path == "/nothing" { 404 } else { 200 }, "{path}: {}", shown.text);
        let policy = shown.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'self'; script-src 'self';"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(shown.headers["cache-control"], "no-store");
        assert_eq!(shown.headers["x-content-type-options"], "nosniff");
        assert_eq!(shown.headers["referrer-policy"], "same-origin");
        assert!(!shown.has(" style=") && !shown.has(" onclick=") && !shown.has("<script>"), "{path}");
        assert!(!shown.has("src=\"http") && !shown.has("rel=\"stylesheet\" href=\"http"), "{path}");
    }
}

#[tokio::test]
async fn the_style_and_the_script_are_kept_by_browsers_until_they_change() {
    let console = Fixture::embedded().await;
    for (path, content_type) in [("/console.css", "text/css"), ("/console.js", "text/javascript")] {
        let shown = console.nobody().get(path).await;
        assert_eq!(shown.status, 200);
        assert!(shown.headers["content-type"].to_str().unwrap().starts_with(content_type));
        assert!(shown.headers["cache-control"].to_str().unwrap().contains("immutable"));
        assert!(console.nobody().get("/log-in").await.has(&format!("\"{path}?")), "{path}");
    }
}

#[tokio::test]
async fn what_a_server_said_is_text_and_never_part_of_the_page() {
    let console = Fixture::fleet().await;
    let said = "<script>alert(1)</script><img src=x onerror=alert(2)>\u{202e}'\"&";
    console.failed(ID, 1, said).await;
    let anna = console.log_in(OPERATOR).await;
    let letters = anna.get("/dead-letters").await;
    let one = format!("/dead-letters/one?crawl={ID}&url=http%3A%2F%2F{ID}.example%2F0");
    for shown in [letters, anna.get(&one).await] {
        assert_eq!(shown.status, 200, "{}", shown.text);
        assert!(shown.has("alert(1)"), "{}", shown.text);
        assert!(
            !shown.has("<script>alert") && !shown.has("<img") && !shown.has("\u{202e}"),
            "{}",
            shown.text
        );
    }
    let shown = anna.get("/crawls?spider=%22%3E%3Cscript%3E").await;
    assert!(!shown.has("<script>"), "{}", shown.text);
    let shown = anna.get("/hosts/block?host=%3Cb%3Ex").await;
    assert!(!shown.has("<b>x"), "{}", shown.text);
}

#[tokio::test]
async fn what_cannot_be_shown_is_said_on_a_page() {
    let console = Fixture::open().await;
    for (path, status) in [
        ("/crawls/20260101-120000-ffffff", 404),
        ("/crawls/nonsense%2F..%2F..", 404),
        ("/crawls/..%2Fhosts", 404),
        ("/hosts?host=..", 200),
        ("/spiders/shop/none", 404),
        ("/spiders/shop/..%2F..%2Fspiders", 404),
        ("/projects/none", 404),
        ("/projects/..%2Fcrawls/remove?version=..", 404),
        ("/spiders/deploy?spider=none", 404),
        ("/crawls?status=nonsense", 400),
        ("/crawls?cursor=nonsense", 400),
        ("/dead-letters?older_than=nonsense", 400),
        ("/dead-letters/one?url=x", 404),
        ("/dead-letters/purge", 400),
        ("/tasks?place=nonsense", 400),
        ("/tasks?crawl=none", 404),
        ("/tasks?cursor=nonsense", 400),
        ("/tasks/nonsense", 404),
        ("/tasks/..%2Fcrawls", 404),
        ("/tasks/cancel", 400),
        ("/crawls/", 404),
        ("/crawls/%ff", 404),
        ("/crawls/%ff/items", 404),
        ("/spiders/%ff/%00", 404),
        ("/projects/none/remove?version=r1", 404),
    ] {
        let shown = console.nobody().get(path).await;
        assert_eq!(shown.status, status, "{path}: {}", shown.text);
        assert!(shown.has("<h1>") && shown.has("aria-label=\"Console\""), "{path}: {}", shown.text);
    }
    let shown = console.nobody().send(console.request(Method::DELETE, "/crawls")).await;
    assert_eq!(shown.status, 405);
    assert!(shown.has("<h1>"), "{}", shown.text);
}

#[tokio::test]
async fn a_state_file_has_no_items_to_show_and_the_page_says_where_they_are() {
    let console = Fixture::open().await;
    console.crawl(ID, 1).await;
    let shown = console.nobody().get(&format!("/crawls/{ID}/items")).await;
    assert_eq!(shown.status, 501);
    assert!(shown.has("--out"), "{}", shown.text);
}

#[tokio::test]
async fn the_api_is_served_beside_the_pages() {
    let console = Fixture::open().await;
    assert_eq!(console.nobody().get("/healthz").await.text, "ok\n");
    assert!(console.nobody().get("/api/v1/crawls").await.has("\"crawls\""));
    assert!(console.nobody().get("/daemonstatus.json").await.has("\"status\""));
}

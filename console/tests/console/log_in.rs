//! Logging in, and requests that a browser cannot be made to send.

use reqwest::Method;
use reqwest::header::SET_COOKIE;

use crate::fixture::{Fixture, OPERATOR, VIEWER};

const ID: &str = "20260101-120000-a1b2c3";

#[tokio::test]
async fn who_has_not_logged_in_is_sent_to_the_log_in_and_sees_nothing() {
    let console = Fixture::embedded().await;
    let shown = console.nobody().get("/crawls?status=running").await;
    assert_eq!(shown.location(), "/log-in?next=%2Fcrawls%3Fstatus%3Drunning");
    assert_eq!(console.nobody().get("/log-in").await.status, 200);
    let shown = console.nobody().post_unproved("/crawls/new", &[("spider", "shop")]).await;
    assert_eq!(shown.status, 401);
    assert!(shown.has("nothing was done"), "{}", shown.text);
}

#[tokio::test]
async fn a_token_of_the_settings_begins_a_session_that_leads_to_where_one_wanted_to_go() {
    let console = Fixture::embedded().await;
    let form = [("token", OPERATOR), ("next", "/hosts?cursor=x")];
    let shown = console.nobody().post_unproved("/log-in", &form).await;
    assert_eq!(shown.location(), "/hosts?cursor=x");
    let cookie = shown.headers[SET_COOKIE].to_str().unwrap();
    for part in ["trawl_session=", "HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains(OPERATOR) && !cookie.contains("Secure"), "{cookie}");
    let anna = console.log_in(OPERATOR).await;
    assert!(anna.get("/").await.has("anna"));
}

#[tokio::test]
async fn over_tls_the_cookie_is_never_sent_without_it() {
    let console = Fixture::embedded().await;
    let request = console.request(Method::POST, "/log-in").header("x-forwarded-proto", "https");
    let request = request.header("host", "trawl.example").body(format!("token={OPERATOR}"));
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let shown = console.nobody().send(request).await;
    assert!(shown.headers[SET_COOKIE].to_str().unwrap().ends_with("; Secure"));
}

#[tokio::test]
async fn a_token_is_not_taken_where_others_could_have_read_it() {
    let console = Fixture::embedded().await;
    let ask = |method| console.request(method, "/log-in").header("host", "trawl.example:8080");
    let shown = console.nobody().send(ask(Method::GET)).await;
    assert!(shown.has("ssh -L") && !shown.has("type=\"password\""), "{}", shown.text);
    let request = ask(Method::POST).header("content-type", "application/x-www-form-urlencoded");
    let shown = console.nobody().send(request.body(format!("token={OPERATOR}"))).await;
    assert_eq!((shown.status, shown.headers.get(SET_COOKIE)), (403, None));
}

#[tokio::test]
async fn a_wrong_token_is_refused_and_guessing_is_slow() {
    let console = Fixture::embedded().await;
    let attempt = async || console.nobody().post_unproved("/log-in", &[("token", "wrong")]).await;
    let shown = attempt().await;
    assert_eq!((shown.status, shown.headers.get(SET_COOKIE)), (401, None));
    assert!(shown.has("nobody has this token") && !shown.has("value=\"wrong\""), "{}", shown.text);
    for _ in 0..20 {
        attempt().await;
    }
    let entered = console.nobody().post_unproved("/log-in", &[("token", OPERATOR)]).await;
    assert!(entered.headers.contains_key(SET_COOKIE), "a right one is taken meanwhile: {}", entered.text);
    let shown = attempt().await;
    assert_eq!(shown.status, 429);
    let after: u64 = shown.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&after), "{after}");
}

#[tokio::test]
async fn who_logs_out_has_no_session_any_more() {
    let console = Fixture::embedded().await;
    let anna = console.log_in(OPERATOR).await;
    let shown = anna.post_unproved("/log-out", &[]).await;
    assert_eq!(shown.location(), "/log-in");
    assert!(shown.headers[SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
    assert!(anna.get("/").await.location().starts_with("/log-in"));
}

#[tokio::test]
async fn a_form_of_another_session_or_of_none_does_nothing() {
    let console = Fixture::embedded().await;
    let crawl = console.crawl(ID, 1).await;
    let (anna, other) = (console.log_in(OPERATOR).await, console.log_in(OPERATOR).await);
    let path = format!("/crawls/{ID}/cancel");
    let page = other.get(&path).await;
    let theirs = page.text.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    for forged in [vec![], vec![("csrf", "")], vec![("csrf", theirs)], vec![("csrf", OPERATOR)]] {
        let shown = anna.post_unproved(&path, &forged).await;
        assert_eq!(shown.status, 403, "{forged:?}: {}", shown.text);
    }
    assert_eq!(console.pending(&crawl).await, 1);
}

#[tokio::test]
async fn a_page_of_another_site_cannot_have_a_browser_send_a_form() {
    let console = Fixture::open().await;
    let crawl = console.crawl(ID, 1).await;
    let path = format!("/crawls/{ID}/cancel");
    let page = console.nobody().get(&path).await;
    let csrf = page.text.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    for (name, value) in
        [("origin", "http://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site")]
    {
        let request = console.request(Method::POST, &path).header(name, value);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let shown = console.nobody().send(request.body(format!("csrf={csrf}"))).await;
        assert_eq!(shown.status, 403, "{name}: {value}");
    }
    assert_eq!(console.pending(&crawl).await, 1);
}

#[tokio::test]
async fn without_tokens_only_this_machine_is_answered_by_a_name_of_its_own() {
    let console = Fixture::open().await;
    assert_eq!(console.nobody().get("/").await.status, 200);
    let rebound = console.request(Method::GET, "/").header("host", "evil.example");
    let shown = console.nobody().send(rebound).await;
    assert_eq!(shown.status, 421);
    assert!(!shown.has("Latest crawls"));
}

#[tokio::test]
async fn a_viewer_is_shown_no_button_and_changes_nothing() {
    let console = Fixture::embedded().await;
    let crawl = console.crawl(ID, 1).await;
    let viewer = console.log_in(VIEWER).await;
    let shown = viewer.get(&format!("/crawls/{ID}")).await;
    assert!(shown.has(ID) && !shown.has("Cancel…") && !shown.has(">Pause"), "{}", shown.text);
    let shown = viewer.post_unproved(&format!("/crawls/{ID}/cancel"), &[]).await;
    assert_eq!(shown.status, 403);
    assert_eq!(console.pending(&crawl).await, 1);
}

#[tokio::test]
async fn a_viewer_who_asks_for_a_form_is_told_what_role_it_takes_and_no_link_leads_there() {
    let console = Fixture::embedded().await;
    console.crawl(ID, 1).await;
    let viewer = console.log_in(VIEWER).await;
    let cancel = format!("/crawls/{ID}/cancel");
    let forms = [
        "/crawls/new",
        "/tasks/new",
        "/tasks/cancel?crawl=x",
        "/spiders/deploy",
        "/hosts/block?host=a.example",
        "/projects/shop/remove",
        "/dead-letters/replay",
        "/dead-letters/purge",
        &cancel,
    ];
    for path in forms {
        let shown = viewer.get(path).await;
        assert_eq!(shown.status, 403, "{path}: {}", shown.text);
        assert!(shown.has("takes an operator") && shown.has("api.operators"), "{path}: {}", shown.text);
        assert!(!shown.has("<form class=\"panel") && !shown.has("name=\"csrf\""), "{path}: {}", shown.text);
    }
    let crawl = format!("/crawls/{ID}");
    let pages = [
        "/",
        "/crawls",
        &crawl,
        "/jobs",
        "/spiders",
        "/schedules",
        "/dead-letters",
        "/hosts",
        "/workers",
        "/tasks",
    ];
    for path in pages {
        let shown = viewer.get(path).await;
        assert_eq!(shown.status, 200, "{path}");
        for form in forms {
            let form = form.split('?').next().unwrap();
            assert!(!shown.has(&format!("\"{form}")), "{path} leads to {form}");
        }
    }
}

#[tokio::test]
async fn a_session_is_none_of_the_api_and_a_token_is_none_of_the_pages() {
    let console = Fixture::embedded().await;
    let anna = console.log_in(OPERATOR).await;
    assert_eq!(anna.get("/api/v1/crawls").await.status, 401, "else pages of other servers here could use it");
    let bearer = console.request(Method::GET, "/api/v1/crawls").bearer_auth(OPERATOR);
    assert_eq!(console.nobody().send(bearer).await.status, 200);
    let bearer = console.request(Method::GET, "/crawls").bearer_auth(OPERATOR);
    assert_eq!(console.nobody().send(bearer).await.status, 303);
}

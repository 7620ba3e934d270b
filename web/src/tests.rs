//! A [`Fetcher`] against servers on this machine.

mod file;
mod http2;
mod machine;
mod memory;
mod names;
mod odd;
mod own;
mod threads;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect};
use axum::routing::get;
use bytesize::ByteSize;
use futures::{TryStreamExt, stream};
use reqwest::header::HeaderValue;
use tokio::net::TcpListener;

use trawl_common::frontier::Request;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::request::NewRequest;
use trawl_common::settings;
use trawl_common::spider::Spider;
use trawl_common::spider::page_history::Validators;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;

use super::answer::Hop;
use super::*;

const LIMIT: usize = 64 * 1024;

fn settings() -> settings::Fetch {
    settings::Fetch {
        allow_private: true,
        max_body: ByteSize(LIMIT as u64),
        contact: Some("https://example.com/bot".to_owned()),
        ..settings::Fetch::default()
    }
}

fn fetcher(settings: &settings::Fetch) -> Fetcher {
    // Every test of the process installs it; the first succeeds.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Fetcher::new(settings).unwrap()
}

async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    origin
}

async fn fetch(url: &str) -> Result<Response, Failure> {
    fetcher(&settings()).fetch(&url.parse().unwrap()).await
}

/// Fetches the page that `answer` creates.
async fn fetch_page<A: IntoResponse + Send + 'static>(answer: fn() -> A) -> Result<Response, Failure> {
    let origin = serve(Router::new().route("/page", get(move || async move { answer() }))).await;
    fetch(&format!("{origin}/page")).await
}

fn class<T: std::fmt::Debug>(result: Result<T, Failure>) -> Class {
    result.unwrap_err().class
}

#[tokio::test]
async fn a_page_comes_with_its_status_headers_body_and_address() {
    let page = fetch_page(|| {
        (StatusCode::ACCEPTED, [("content-type", "text/html; charset=x"), ("ETag", "x")], "hello")
    });
    let page = page.await.unwrap();
    assert_eq!((page.status, page.content_type()), (202, Some("text/html; charset=x")));
    assert_eq!((page.headers.get("etag"), page.address), (Some("x"), Some([127, 0, 0, 1].into())));
    assert_eq!((page.redirected_to, page.body), (None, "hello".into()));
}

#[tokio::test]
async fn a_page_without_type_and_body_is_a_page() {
    let page = fetch_page(|| StatusCode::NO_CONTENT).await.unwrap();
    assert_eq!((page.status, page.content_type(), page.body.len()), (204, None, 0));
}

#[tokio::test]
async fn the_crawler_says_who_it_is_and_what_it_reads() {
    let echo = |headers: HeaderMap| async move {
        let value =
            |name| headers.get(name).map_or("", |value: &HeaderValue| value.to_str().unwrap()).to_owned();
        [value("user-agent"), value("accept"), value("accept-language"), value("accept-encoding")].join("\n")
    };
    let origin = serve(Router::new().route("/", get(echo))).await;
    let page = fetch(&origin).await.unwrap();
    let lines: Vec<_> = std::str::from_utf8(&page.body).unwrap().lines().collect();
    assert_eq!(lines[0], concat!("trawl/", env!("CARGO_PKG_VERSION"), " (+https://example.com/bot)"));
    assert!(lines[1].starts_with("text/html") && lines[2].starts_with("en"));
    for coding in ["gzip", "br", "zstd", "deflate"] {
        assert!(lines[3].contains(coding), "{coding}");
    }
}

#[tokio::test]
async fn the_request_headers_that_are_kept_are_those_that_the_server_got() {
    let echo = |headers: HeaderMap| async move {
        let fields = headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
        fields.collect::<Vec<_>>().join("\n")
    };
    let url = format!("{}/page?a", serve(Router::new().route("/page", get(echo))).await).parse().unwrap();
    let fetcher = fetcher(&settings());
    let validators = Validators::new(Some("\"a\""), Some("yesterday"));
    let Ok(Answer::Page(page)) = fetcher.ask(&url, &validators).await else { panic!("it is a page") };
    let mut got: Vec<_> = std::str::from_utf8(&page.body).unwrap().lines().map(str::to_owned).collect();
    let mut sent: Vec<_> = fetcher
        .request_headers(&url, &validators)
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    got.sort();
    sent.sort();
    assert_eq!(sent, got);
}

#[tokio::test]
async fn a_status_that_is_no_success_is_a_failure_with_that_status() {
    for status in [304, 400, 404, 410, 429, 500, 503] {
        let answer = move || async move { StatusCode::from_u16(status).unwrap() };
        let origin = serve(Router::new().route("/", get(answer))).await;
        let failure = fetch(&origin).await.unwrap_err();
        assert_eq!((failure.class, failure.status, failure.retry_after), (Class::Http, Some(status), None));
    }
}

#[tokio::test]
async fn a_server_may_say_when_to_come_back() {
    let failure = fetch_page(|| (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "7")])).await.unwrap_err();
    assert_eq!((failure.status, failure.retry_after), (Some(503), Some(Duration::from_secs(7))));
}

#[tokio::test]
async fn one_hop_is_asked_at_a_time() {
    let site = Router::new()
        .route("/a", get(|| async { Redirect::permanent("b#part") }))
        .route("/b", get(|| async { "here" }))
        .route("/c", get(|| async { ([("content-type", "image/png")], "\u{89}PNG") }));
    let origin = serve(site).await;
    let fetcher = fetcher(&settings());
    let url = |path: &str| CanonicalUrl::parse(&format!("{origin}{path}")).unwrap();
    let ask = async |path: &str| fetcher.ask(&url(path), &Validators::default()).await;
    assert_eq!(ask("/a").await, Ok(Answer::Redirect(url("/b").into())));
    assert!(matches!(ask("/b").await, Ok(Answer::Page(page)) if page.body == "here"));
    let unread = Answer::Unread { status: 200, content_type: "image/png".to_owned() };
    assert_eq!(ask("/c").await, Ok(unread));
}

#[tokio::test]
async fn a_request_for_any_status_is_answered_by_whatever_comes() {
    let busy = || async { (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "7")], "later") };
    let site = Router::new()
        .route("/moved", get(|| async { Redirect::permanent("http://localhost/") }))
        .route("/image", get(|| async { ([("content-type", "image/png")], "\u{89}PNG") }))
        .route("/busy", get(busy));
    let origin = serve(site).await;
    let fetcher = fetcher(&settings());
    let ask = async |path: &str| {
        let new = NewRequest { any_status: true, ..NewRequest::get("") };
        let request = Request::new(format!("{origin}{path}").parse().unwrap(), new).unwrap();
        match fetcher.ask_for(&request, None).await {
            Ok(Answer::Page(page)) => page,
            other => panic!("{other:?}"),
        }
    };
    for (path, status, body) in
        [("/moved", 308, ""), ("/image", 200, "\u{89}PNG"), ("/busy", 503, "later"), ("/none", 404, "")]
    {
        let page = ask(path).await;
        assert_eq!((page.status, &page.body[..]), (status, body.as_bytes()), "{path}");
    }
    let refusal = crate::refusal(&ask("/busy").await).unwrap();
    assert_eq!((refusal.status, refusal.retry_after), (Some(503), Some(Duration::from_secs(7))));
    assert_eq!(crate::refusal(&ask("/none").await), None);
}

#[tokio::test]
async fn a_server_is_asked_with_its_validators_as_they_came() {
    let date = "Sat, 21 Nov 2026 15:45:29 GMT";
    let echo = |headers: HeaderMap| async move {
        let value =
            |name| headers.get(name).map_or("-".into(), |value| String::from_utf8_lossy(value.as_bytes()));
        format!("{} | {}", value("if-none-match"), value("if-modified-since"))
    };
    let origin = serve(Router::new().route("/", get(echo))).await;
    let (fetcher, url) = (fetcher(&settings()), origin.parse().unwrap());
    for (etag, modified, expected) in [
        (None, None, "- | -".to_owned()),
        (Some("\"strong\""), None, "\"strong\" | -".to_owned()),
        (Some("W/\"weak\""), Some(date), format!("W/\"weak\" | {date}")),
        (Some("no quotes, \u{fc}"), None, "no quotes, \u{fc} | -".to_owned()),
        (None, Some("yesterday"), "- | yesterday".to_owned()),
    ] {
        match fetcher.ask(&url, &Validators::new(etag, modified)).await {
            Ok(Answer::Page(page)) => assert_eq!(page.body, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn an_answer_that_nothing_has_changed_counts_only_if_it_was_asked_for() {
    let url = serve(Router::new().route("/", get(|| async { StatusCode::NOT_MODIFIED }))).await;
    let (fetcher, url) = (fetcher(&settings()), url.parse().unwrap());
    let ask = async |etag| fetcher.ask(&url, &Validators::new(etag, None)).await;
    assert_eq!(ask(Some("\"a\"")).await, Ok(Answer::NotModified));
    assert_eq!(ask(None).await.unwrap_err().status, Some(304));
}

#[tokio::test]
async fn what_nobody_reads_is_not_downloaded() {
    let endless = || async {
        let body = Body::from_stream(stream::repeat(Ok::<_, Infallible>("x".repeat(1000))));
        ([("content-type", "video/mp4")], body)
    };
    let page = fetch(&serve(Router::new().route("/", get(endless))).await).await.unwrap();
    assert_eq!((page.content_type(), page.body.len()), (Some("video/mp4"), 0));
}

#[tokio::test]
async fn the_start_of_an_answer_comes_with_any_status_and_is_cut_off() {
    let site = Router::new()
        .route("/long", get(|| async { "x".repeat(10 * LIMIT) }))
        .route("/short", get(|| async { "all" }))
        .route("/none", get(|| async { StatusCode::NOT_FOUND }))
        .route("/busy", get(|| async { (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "7")], "later") }));
    let origin = serve(site).await;
    let fetcher = fetcher(&settings());
    let start = async |path: &str| {
        let url = format!("{origin}{path}").parse().unwrap();
        let Hop::Start(start) = fetcher.start(&url, 2 * LIMIT).await.unwrap() else { panic!("redirected") };
        (start.status, start.body.len(), start.retry_after)
    };
    assert_eq!(start("/long").await, (200, 2 * LIMIT, None));
    assert_eq!(start("/short").await, (200, 3, None));
    assert_eq!(start("/none").await, (404, 0, None));
    assert_eq!(start("/busy").await, (503, 0, Some(Duration::from_secs(7))));
}

#[tokio::test]
async fn a_stream_is_unpacked_however_large_and_of_any_kind() {
    let packed = || async {
        let packed = async_compression::tokio::bufread::GzipEncoder::new(&[7; 10 * LIMIT][..]);
        let headers = [("content-type", "application/octet-stream"), ("content-encoding", "gzip")];
        (headers, Body::from_stream(tokio_util::io::ReaderStream::new(packed)))
    };
    let origin = serve(Router::new().route("/", get(packed))).await;
    let opened = fetcher(&settings()).open(&origin.parse().unwrap()).await.unwrap();
    let Opened::Body(_, parts) = opened else { panic!("redirected") };
    let size = parts.try_fold(0, |size, part| async move { Ok(size + part.len()) });
    assert_eq!(size.await, Ok(10 * LIMIT));
}

#[tokio::test]
async fn redirects_are_followed_to_the_page() {
    let site = Router::new()
        .route("/a", get(|| async { Redirect::permanent("b?x=1#part") }))
        .route("/b", get(|| async { Redirect::to("/\u{e4}") }))
        .route("/%C3%A4", get(|| async { "here" }));
    let origin = serve(site).await;
    let page = fetch(&format!("{origin}/a")).await.unwrap();
    assert_eq!(page.redirected_to.unwrap().as_str(), format!("{origin}/%C3%A4"));
    assert_eq!(page.body, "here");
}

#[tokio::test]
async fn ten_redirects_are_followed_and_no_more() {
    let next = |axum::extract::Path(left): axum::extract::Path<u8>| async move {
        match left {
            0 => "here".into_response(),
            _ => Redirect::temporary(&format!("/{}", left - 1)).into_response(),
        }
    };
    let origin = serve(Router::new().route("/{left}", get(next))).await;
    assert!(fetch(&format!("{origin}/10")).await.is_ok());
    assert_eq!(class(fetch(&format!("{origin}/11")).await), Class::Redirect);
}

#[tokio::test]
async fn a_redirect_without_a_target_is_a_status() {
    let failure = fetch_page(|| StatusCode::FOUND).await.unwrap_err();
    assert_eq!((failure.class, failure.status), (Class::Http, Some(302)));
}

#[tokio::test]
async fn each_failure_to_connect_has_its_own_class() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = listener.local_addr().unwrap();
    drop(listener);
    let refused = fetch(&format!("http://{closed}/")).await.unwrap_err();
    assert_eq!(refused.class, Class::Connect);
    assert!(refused.detail.starts_with("Connection refused"), "{refused}");

    assert_eq!(class(fetch("http://nonexistent.invalid/").await), Class::Dns);

    let plain = serve(Router::new()).await.replace("http:", "https:");
    assert_eq!(class(fetch(&plain).await), Class::Tls);
}

#[tokio::test]
async fn a_body_may_be_as_large_as_the_limit_and_no_larger() {
    let exact = fetch_page(|| "x".repeat(LIMIT)).await.unwrap();
    assert_eq!(exact.body.len(), LIMIT);
    assert_eq!(class(fetch_page(|| "x".repeat(LIMIT + 1)).await), Class::Size);
    // Without a length, it shows only while reading.
    let endless = || Body::from_stream(stream::repeat(Ok::<_, Infallible>("x".repeat(1000))));
    assert_eq!(class(fetch_page(endless).await), Class::Size);
}

#[test]
fn a_user_agent_that_is_no_header_is_refused() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let settings = settings::Fetch { user_agent: "a\nb".to_owned(), ..settings() };
    assert!(Fetcher::new(&settings).is_err());
}

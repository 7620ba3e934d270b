//! A [`Fetcher`] against servers on this machine.

use std::convert::Infallible;
use std::io::Write;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect};
use axum::routing::get;
use bytesize::ByteSize;
use futures::{StreamExt, stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

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

/// What a page that `answer` makes fetches as.
async fn fetch_page<A: IntoResponse + Send + 'static>(answer: fn() -> A) -> Result<Response, Failure> {
    let origin = serve(Router::new().route("/page", get(move || async move { answer() }))).await;
    fetch(&format!("{origin}/page")).await
}

fn class<T: std::fmt::Debug>(result: Result<T, Failure>) -> Class {
    result.unwrap_err().class
}

#[tokio::test]
async fn a_page_comes_with_its_status_type_and_body() {
    let page = fetch_page(|| (StatusCode::ACCEPTED, [("content-type", "text/html; charset=x")], "hello"));
    let expected = Response {
        status: 202,
        content_type: Some("text/html; charset=x".to_owned()),
        redirected_to: None,
        body: "hello".into(),
    };
    assert_eq!(page.await, Ok(expected));
}

#[tokio::test]
async fn a_page_without_type_and_body_is_a_page() {
    let page = fetch_page(|| StatusCode::NO_CONTENT).await.unwrap();
    assert_eq!((page.status, page.content_type, page.body.len()), (204, None, 0));
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
async fn a_circle_of_redirects_is_left_at_once() {
    let site = Router::new()
        .route("/a", get(|| async { Redirect::to("/b") }))
        .route("/b", get(|| async { Redirect::to("/a") }));
    let failure = fetch(&format!("{}/a", serve(site).await)).await.unwrap_err();
    assert_eq!(failure.class, Class::Redirect);
    assert!(failure.detail.starts_with("redirected in a circle"), "{failure}");
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
async fn a_redirect_to_what_cannot_be_crawled_fails() {
    for target in ["ftp://example.com/", "javascript:alert(1)", "http://", "http://user:secret@example.com/"]
    {
        let site = Router::new().route("/", get(move || async move { Redirect::to(target) }));
        assert_eq!(class(fetch(&serve(site).await).await), Class::Redirect, "{target}");
    }
}

#[tokio::test]
async fn a_redirect_without_a_target_is_a_status() {
    let failure = fetch_page(|| StatusCode::FOUND).await.unwrap_err();
    assert_eq!((failure.class, failure.status), (Class::Http, Some(302)));
}

#[tokio::test]
async fn private_addresses_are_refused_however_they_are_written() {
    let origin = serve(Router::new().route("/", get(|| async { "secret" }))).await;
    let port = origin.rsplit(':').next().unwrap();
    let guarded = fetcher(&settings::Fetch { allow_private: false, ..settings() });
    for host in ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]"] {
        let url = format!("http://{host}:{port}/").parse().unwrap();
        let failure = guarded.fetch(&url).await.unwrap_err();
        assert_eq!(failure.class, Class::Forbidden, "{host}: {failure}");
        assert!(failure.detail.contains("fetch.allow_private"), "{failure}");
    }
}

#[tokio::test]
async fn a_redirect_is_guarded_like_the_first_request() {
    let site =
        Router::new().route("/", get(|| async { Redirect::to("http://169.254.169.254/latest/meta-data/") }));
    let origin: CanonicalUrl = serve(site).await.parse().unwrap();
    let settings = settings::Fetch {
        allow_private: false,
        allow_networks: vec!["127.0.0.1".parse().unwrap()],
        ..settings()
    };
    let failure = fetcher(&settings).fetch(&origin).await.unwrap_err();
    assert_eq!((failure.class, failure.status), (Class::Forbidden, Some(303)));
    assert!(failure.detail.starts_with("169.254.169.254 is not"), "{failure}");
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    // Connections are made by the kernel; nobody reads from them.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let impatient = fetcher(&settings::Fetch { timeout: Duration::from_millis(50), ..settings() });
    assert_eq!(class(impatient.fetch(&url).await), Class::Timeout);
}

#[tokio::test]
async fn a_body_that_never_ends_is_given_up() {
    let drip =
        || async { Body::from_stream(stream::iter([Ok::<_, Infallible>("x")]).chain(stream::pending())) };
    let url = serve(Router::new().route("/", get(drip))).await.parse().unwrap();
    let impatient = fetcher(&settings::Fetch { timeout: Duration::from_millis(200), ..settings() });
    assert_eq!(class(impatient.fetch(&url).await), Class::Timeout);
}

#[tokio::test]
async fn failures_to_connect_are_told_apart() {
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

/// A server that gives every connection the same bytes, whatever it is asked.
async fn serve_bytes(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            // Unread bytes would turn the close into a reset.
            let _ = connection.read(&mut [0; 4096]).await;
            let _ = connection.write_all(answer).await;
        }
    });
    origin
}

#[tokio::test]
async fn a_connection_closed_without_an_answer_is_a_broken_connection() {
    assert_eq!(class(fetch(&serve_bytes(b"").await).await), Class::Connect);
    assert_eq!(class(fetch(&serve_bytes(b"HTTP/1.1 200").await).await), Class::Connect);
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

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zlib(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

async fn fetch_encoded(coding: &'static str, body: Vec<u8>) -> Result<Response, Failure> {
    let answer =
        move || async move { ([("content-type", "text/html"), ("content-encoding", coding)], body.clone()) };
    fetch(&serve(Router::new().route("/", get(answer))).await).await
}

#[tokio::test]
async fn content_codings_are_decoded() {
    // "hello" as a stored brotli block.
    let brotli = b"\x0b\x02\x80hello\x03".to_vec();
    let zstd = zstd::encode_all(&b"hello"[..], 3).unwrap();
    for (coding, body) in
        [("gzip", gzip(b"hello")), ("deflate", zlib(b"hello")), ("br", brotli), ("zstd", zstd)]
    {
        assert_eq!(fetch_encoded(coding, body).await.unwrap().body, "hello", "{coding}");
    }
}

#[tokio::test]
async fn a_small_body_that_decodes_to_a_huge_one_is_cut_off() {
    let zeros = vec![0; 100 * LIMIT];
    let bomb = gzip(&zeros);
    assert!(bomb.len() < LIMIT / 4);
    let failure = fetch_encoded("gzip", bomb).await.unwrap_err();
    assert_eq!(failure.class, Class::Size);
    assert!(failure.detail.contains("fetch.max_body"), "{failure}");
    assert_eq!(class(fetch_encoded("zstd", zstd::encode_all(&zeros[..], 3).unwrap()).await), Class::Size);
}

#[tokio::test]
async fn a_broken_body_is_a_failure() {
    assert_eq!(class(fetch_encoded("gzip", b"not gzip".to_vec()).await), Class::Body);
    let cut = serve_bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort").await;
    assert_eq!(class(fetch(&cut).await), Class::Body);
}

#[test]
fn a_user_agent_that_is_no_header_is_refused() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let settings = settings::Fetch { user_agent: "a\nb".to_owned(), ..settings() };
    assert!(Fetcher::new(&settings).is_err());
}

//! Malformed and excessive requests.

use std::time::Duration;

use reqwest::{Method, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fixture::{Fixture, OPERATOR, VIEWER};

const REPLAY: &str = "/api/v1/dead-letters/replay";

/// Sends these bytes, and returns what the API answers.
async fn raw(fixture: &Fixture, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(fixture.address).await.unwrap();
    // Writing fails if the API has answered and closed the connection.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(2), stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_body_that_is_too_large_or_no_json_is_refused() {
    let fixture = Fixture::embedded().await;
    let post = |content_type: &str, body: Vec<u8>| {
        fixture.send(fixture.operator(Method::POST, REPLAY).header("content-type", content_type).body(body))
    };
    let json = "application/json";
    assert_eq!(post(json, vec![b' '; 1024 * 1024 + 1]).await.status, 413);
    assert_eq!(post("text/plain", b"{}".to_vec()).await.status, 415);
    assert_eq!(post("application/x-www-form-urlencoded", b"all=true".to_vec()).await.status, 415);
    for body in
        [&b""[..], b"{", b"\xff", b"{\"all\":true,\"all\":true}", b"{\"all\":true} x", b"1e999", b"[true]"]
    {
        let answer = post("application/json; charset=utf-8", body.to_vec()).await;
        assert_eq!(answer.status, 400, "{body:?}");
    }
    assert_eq!(post(json, "[".repeat(100_000).into_bytes()).await.status, 400, "deep");
    assert_eq!(post(json, b"{\"all\": true}".to_vec()).await.status, 200);
}

#[tokio::test]
async fn a_path_that_is_none_and_a_method_that_does_not_fit_are_told() {
    let fixture = Fixture::embedded().await;
    for path in [
        "/index.html",
        "/api",
        "/api/v1",
        "/api/v2/crawls",
        "/api/v1/crawls/",
        "//api/v1/crawls",
        "/api/v1/crawls/a/b/c",
    ] {
        assert_eq!(fixture.get(path).await.status, 404, "{path}");
    }
    for method in [Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS] {
        let answer = fixture.send(fixture.operator(method.clone(), "/api/v1/crawls")).await;
        assert_eq!(answer.status, 405, "{method}");
        assert!(answer.headers.contains_key("allow"));
    }
    for query in [
        "limit=0",
        "limit=1001",
        "limit=-1",
        "limit=x",
        "limit=",
        "x=1",
        "status=odd",
        "spider=A",
        "cursor=%00",
    ] {
        let answer = fixture.get(&format!("/api/v1/crawls?{query}")).await;
        assert_eq!(answer.status, 400, "{query}");
    }
}

#[tokio::test]
async fn what_is_no_http_ends_its_own_connection_alone() {
    let fixture = Fixture::embedded().await;
    let token = format!("Authorization: Bearer {OPERATOR}\r\n");
    let head = format!("POST {REPLAY} HTTP/1.1\r\nHost: x\r\n{token}Content-Type: application/json\r\n");
    let many: String = (0..200).map(|number| format!("X-{number}: x\r\n")).collect();
    for bytes in [
        b"\x16\x03\x01\x02\x00\x01\x00".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        format!("GET /api/v1/crawls HTTP/1.1\r\nHost: x\r\n{many}\r\n").into_bytes(),
        format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(100_000)).into_bytes(),
        format!("{head}Content-Length: 5\r\nContent-Length: 6\r\n\r\n{{}}").into_bytes(),
        format!("{head}Content-Length: -1\r\n\r\n{{}}").into_bytes(),
        format!("{head}Transfer-Encoding: chunked\r\n\r\nZZ\r\n{{}}\r\n").into_bytes(),
    ] {
        let answer = raw(&fixture, &bytes).await;
        let status = answer.split(' ').nth(1).unwrap_or_default().to_owned();
        assert!(answer.is_empty() || status.starts_with('4'), "{answer}");
    }
    assert_eq!(fixture.get("/api/v1/crawls").await.status, 200);
}

#[tokio::test]
async fn a_hundred_requests_that_never_arrive_whole_hold_up_nobody() {
    let fixture = Fixture::embedded().await;
    let mut idle = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(fixture.address).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: ").await.unwrap();
        idle.push(stream);
    }
    assert_eq!(fixture.get("/api/v1/crawls").await.status, 200);
}

/// Opens streams with this token until one is refused. Returns their number, the streams, and the refusal.
async fn all_streams(fixture: &Fixture, path: &str, token: &str) -> (usize, Vec<Response>, Response) {
    let mut open = Vec::new();
    loop {
        let request = fixture.request(Method::GET, path).bearer_auth(token);
        let response = request.header("accept", "text/event-stream").send().await.unwrap();
        if response.status() != 200 {
            return (open.len(), open, response);
        }
        open.push(response);
    }
}

#[tokio::test]
async fn a_viewer_who_opens_streams_without_end_gets_a_share_and_an_operator_still_finds_places() {
    let fixture = Fixture::embedded().await;
    fixture.crawl("one", "a", 1).await;
    for (path, share) in [("/api/v1/logs", 12), ("/api/v1/crawls/one/events", 96)] {
        let (number, open, refused) = all_streams(&fixture, path, VIEWER).await;
        assert_eq!((number, refused.status().as_u16()), (share, 429), "{path}");
        assert_eq!(refused.headers()["retry-after"], "5");
        assert!(refused.text().await.unwrap().contains("end one of them"));
        let (number, ..) = all_streams(&fixture, path, OPERATOR).await;
        assert!(number >= 8, "{path}: {number}");
        drop(open);
    }
    assert_eq!(fixture.get("/api/v1/crawls").await.status, 200);
}

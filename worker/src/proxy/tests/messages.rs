//! Tests of requests and responses in all forms of HTTP/1.1: each side gets what the other one sends.

use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;

/// A host that answers one request on each connection with the same bytes, and records the request.
struct Raw {
    address: SocketAddr,
    asked: UnboundedReceiver<String>,
}

impl Raw {
    async fn serve(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, (asks, asked)) = (listener.local_addr().unwrap(), unbounded_channel());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                while !is_whole(&request) && stream.read_buf(&mut request).await.unwrap() > 0 {}
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = asks.send(String::from_utf8(request).unwrap());
            }
        });
        Self { address, asked }
    }

    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// The request, with field names in lower case.
    async fn asked(&mut self) -> String {
        timeout(LIMIT, self.asked.recv()).await.unwrap().unwrap().to_lowercase()
    }
}

/// Whether a request is complete.
fn is_whole(request: &[u8]) -> bool {
    let request = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = request.split_once("\r\n\r\n") else { return false };
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
    match length {
        Some(length) => body.len() >= length,
        None => !head.contains("transfer-encoding: chunked") || body.ends_with("0\r\n\r\n"),
    }
}

impl Admitted {
    /// Returns a request of this run after whose response the connection ends.
    fn last(&self, line: &str, more: &str) -> String {
        format!("{line}\r\nProxy-Authorization: Basic {}\r\nConnection: close\r\n{more}", self.login)
    }

    /// Sends a text on a connection, and returns everything that comes back.
    async fn answers(&self, sent: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut all = String::new();
        timeout(LIMIT, stream.read_to_string(&mut all)).await.unwrap().unwrap();
        all
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[tokio::test]
async fn an_upload_in_chunks_arrives_whole_without_its_trailers() {
    let (mut host, fixture) = (Raw::serve(OK).await, Fixture::new(|_| {}));
    let run = fixture.run();
    let head = "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n";
    let body = "5\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 7\r\n\r\n";
    let got = run.answers(&(run.last(&format!("POST {} HTTP/1.1", host.url()), head) + body)).await;
    assert!(got.starts_with("HTTP/1.1 200") && got.ends_with("\r\n\r\nok"), "{got}");
    let asked = host.asked().await;
    assert!(asked.contains("transfer-encoding: chunked") && asked.contains("hello"), "{asked}");
    assert!(asked.contains(" world") && !asked.contains("x-sum"), "{asked}");
}

#[tokio::test]
async fn a_body_is_asked_for_when_its_host_may_be_asked_and_not_before() {
    let (mut host, fixture) = (Raw::serve(OK).await, Fixture::new(|_| {}));
    let run = fixture.run();
    let expects = |url: &str| {
        let more = "Content-Length: 4\r\nExpect: 100-continue\r\n\r\n";
        run.last(&format!("POST {url} HTTP/1.1"), more)
    };
    let mut stream = BufReader::new(run.connect().await);
    stream.write_all(expects(&host.url()).as_bytes()).await.unwrap();
    let mut line = String::new();
    timeout(LIMIT, stream.read_line(&mut line)).await.unwrap().unwrap();
    assert_eq!(line, "HTTP/1.1 100 Continue\r\n");
    stream.write_all(b"body").await.unwrap();
    let mut rest = String::new();
    timeout(LIMIT, stream.read_to_string(&mut rest)).await.unwrap().unwrap();
    assert!(rest.ends_with("\r\n\r\nok"), "{rest}");
    let asked = host.asked().await;
    assert!(asked.ends_with("\r\n\r\nbody") && !asked.contains("expect"), "{asked}");
    let key = HostKey::from_text("127.0.0.1");
    fixture.engine.host_control().block(&key).await.unwrap();
    let got = run.answers(&expects(&host.url())).await;
    assert!(got.starts_with("HTTP/1.1 403"), "{got}");
}

#[tokio::test]
async fn answers_without_a_body_end_with_their_heads() {
    let answers = [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 70\r\n\r\n", "content-length: 70"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n", "http/1.1 204"),
        ("GET", "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 70\r\n\r\n", "etag: \"a\""),
    ];
    let fixture = Fixture::new(|_| {});
    let run = fixture.run();
    for (method, answer, said) in answers {
        let host = Raw::serve(answer).await;
        let got = run.answers(&run.last(&format!("{method} {} HTTP/1.1", host.url()), "\r\n")).await;
        let got = got.to_lowercase();
        assert!(got.contains(said) && got.ends_with("\r\n\r\n"), "{method} {answer}: {got}");
    }
}

#[tokio::test]
async fn requests_that_come_together_are_answered_in_order() {
    let (site, fixture) = (site(pages()).await, Fixture::new(|_| {}));
    let run = fixture.run();
    let last = run.last(&format!("GET {} HTTP/1.1", site.url(0, "/page/2")), "\r\n");
    let got = run.answers(&(run.head(&format!("GET {}", site.url(0, "/page/1"))) + &last)).await;
    let (one, two) = (got.find("<title>Page 1<").unwrap(), got.find("<title>Page 2<").unwrap());
    assert!(one < two, "{got}");
}

#[tokio::test]
async fn a_client_of_http_1_0_gets_a_body_without_chunks() {
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let (host, fixture) = (Raw::serve(answer).await, Fixture::new(|_| {}));
    let run = fixture.run();
    let got = run.answers(&run.last(&format!("GET {} HTTP/1.0", host.url()), "\r\n")).await.to_lowercase();
    assert!(got.starts_with("http/1.0 200") && got.ends_with("\r\n\r\nhello"), "{got}");
    assert!(!got.contains("transfer-encoding"), "{got}");
}

#[tokio::test]
async fn trailers_of_an_answer_go_no_further() {
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 7\r\n\r\n";
    let (host, fixture) = (Raw::serve(answer).await, Fixture::new(|_| {}));
    let run = fixture.run();
    let got = run.answers(&run.last(&format!("GET {} HTTP/1.1", host.url()), "TE: trailers\r\n\r\n")).await;
    assert!(got.ends_with("\r\n\r\n5\r\nhello\r\n0\r\n\r\n") && !got.contains("X-Sum"), "{got}");
}

#[tokio::test]
async fn a_connection_becomes_no_other_protocol() {
    let fixture = Fixture::new(|_| {});
    let run = fixture.run();
    let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n";
    let mut host = Raw::serve("HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n").await;
    let got = run.answers(&run.last(&format!("GET {} HTTP/1.1", host.url()), upgrade)).await;
    assert!(got.starts_with("HTTP/1.1 426"), "{got}");
    let asked = host.asked().await;
    assert!(!asked.contains("upgrade: ") && !asked.contains("connection: upgrade"), "{asked}");
    let host = Raw::serve("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nframes").await;
    let got = run.answers(&run.last(&format!("GET {} HTTP/1.1", host.url()), upgrade)).await;
    assert!(got.starts_with("HTTP/1.1 502") && !got.contains("frames"), "{got}");
}

#[tokio::test]
async fn a_request_that_names_no_user_agent_has_the_one_of_its_spider() {
    let (mut host, fixture) = (Raw::serve(OK).await, Fixture::new(|_| {}));
    let run = fixture.run();
    run.answers(&run.last(&format!("GET {} HTTP/1.1", host.url()), "\r\n")).await;
    let asked = host.asked().await;
    assert!(asked.contains("\r\nuser-agent: trawl/"), "{asked}");
    run.answers(&run.last(&format!("GET {} HTTP/1.1", host.url()), "User-Agent: mine\r\n\r\n")).await;
    assert!(host.asked().await.contains("\r\nuser-agent: mine\r\n"));
}

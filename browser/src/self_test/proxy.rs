//! A proxy that gives one page, refuses all else, and notes what it is asked for.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

/// The URL of the page, on a host that browsers trust as they trust HTTPS: without that a page has fewer ways.
pub(super) const URL: &str = "http://localhost/";

/// Time without a request after which no other is expected.
const QUIET: Duration = Duration::from_millis(500);

/// Maximum size of the head of a request.
const MAX_HEAD: u64 = 16_384;

/// Maximum number of requests that are noted.
const MAX_NOTED: usize = 256;

/// A running proxy. It stops when this is dropped.
pub(super) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    _runs: AbortOnDropHandle<()>,
}

struct Shared {
    page: String,
    forbidden: SocketAddr,
    asked: Mutex<Asked>,
}

/// The requests so far.
struct Asked {
    targets: Vec<String>,
    last: Instant,
}

impl Proxy {
    /// Starts a proxy with a page in which `ADDRESS` stands for `forbidden`.
    pub(super) fn start(page: &str, forbidden: SocketAddr) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let page = page.replace("ADDRESS", &forbidden.to_string());
        let asked = Mutex::new(Asked { targets: Vec::new(), last: Instant::now() });
        let shared = Arc::new(Shared { page, forbidden, asked });
        let running = tokio::spawn(accept(TcpListener::from_std(listener)?, Arc::clone(&shared)));
        Ok(Self { address, shared, _runs: AbortOnDropHandle::new(running) })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until there was no request for a while.
    pub(super) async fn quiet(&self) {
        loop {
            let until = self.shared.asked.lock().last + QUIET;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }

    /// Whether it was asked for this path of the forbidden address.
    pub(super) fn was_asked_for(&self, path: &str) -> bool {
        let target = format!("http://{}{path}", self.shared.forbidden);
        self.shared.asked.lock().targets.contains(&target)
    }
}

/// Answers connections until it is aborted.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(answer(stream, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

/// Answers one request. A browser that hangs up meanwhile gets nothing.
async fn answer(mut stream: TcpStream, shared: Arc<Shared>) {
    let Some(target) = target(&mut stream).await else { return };
    let response = shared.response(&target);
    {
        let mut asked = shared.asked.lock();
        asked.last = Instant::now();
        if asked.targets.len() < MAX_NOTED {
            asked.targets.push(target);
        }
    }
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// Reads the head of a request, and returns what it asks for; `None` if it is none.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let (mut head, mut limited) = (Vec::new(), stream.take(MAX_HEAD));
    while !head.ends_with(b"\r\n\r\n") {
        head.push(limited.read_u8().await.ok()?);
    }
    String::from_utf8_lossy(&head).split(' ').nth(1).map(str::to_owned)
}

impl Shared {
    fn response(&self, target: &str) -> String {
        let forbidden = self.forbidden;
        match target.strip_prefix(URL) {
            Some("") => response("200 OK", "content-type: text/html", &self.page),
            Some("redirect") => {
                response("302 Found", &format!("location: http://{forbidden}/redirected"), "")
            }
            Some("service.js") => {
                let script = format!("fetch('http://{forbidden}/service')");
                response("200 OK", "content-type: text/javascript", &script)
            }
            _ => response("403 Forbidden", "content-type: text/plain", ""),
        }
    }
}

fn response(status: &str, field: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{field}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(proxy: &Proxy, request: &str) -> String {
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn the_page_is_given_and_all_else_is_refused_and_noted() {
        let forbidden = "127.0.0.1:7".parse().unwrap();
        let proxy = Proxy::start("<script src=http://ADDRESS/script></script>", forbidden).unwrap();
        let page = ask(&proxy, "GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("http://127.0.0.1:7/script"), "{page}");
        assert!(!proxy.was_asked_for("/script"));
        let refused = ask(&proxy, "GET http://127.0.0.1:7/script HTTP/1.1\r\n\r\n").await;
        assert!(refused.starts_with("HTTP/1.1 403 ") && proxy.was_asked_for("/script"), "{refused}");
        assert!(ask(&proxy, "CONNECT 127.0.0.1:7 HTTP/1.1\r\n\r\n").await.starts_with("HTTP/1.1 403 "));
    }
}

//! A server that sends the same bytes on every connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use trawl_common::web::url::CanonicalUrl;

/// The bytes sent on each connection after the request.
pub(crate) struct Script {
    start: Vec<u8>,
    then: Then,
}

enum Then {
    Close,
    Repeat(Vec<u8>, Option<Duration>),
}

impl Script {
    /// Sends `bytes` and closes.
    pub(crate) fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self { start: bytes.into(), then: Then::Close }
    }

    /// Sends `start`, and then `again` without end, as fast as it is read.
    pub(crate) fn endless(start: impl Into<Vec<u8>>, again: impl Into<Vec<u8>>) -> Self {
        Self { start: start.into(), then: Then::Repeat(again.into(), None) }
    }

    /// Sends `start`, and then `again` every second without end.
    pub(crate) fn drip(start: impl Into<Vec<u8>>, again: impl Into<Vec<u8>>) -> Self {
        Self { start: start.into(), then: Then::Repeat(again.into(), Some(Duration::from_secs(1))) }
    }

    /// A page with these headers, one per line.
    pub(crate) fn page(headers: &str, body: impl AsRef<[u8]>) -> Self {
        Self::bytes([head(200, headers).as_bytes(), body.as_ref()].concat())
    }

    /// A redirect to `location`.
    pub(crate) fn redirect(location: impl AsRef<[u8]>) -> Self {
        let head = head(302, "");
        let head = head.trim_end().as_bytes();
        Self::bytes([head, b"\r\nlocation: ", location.as_ref(), b"\r\n\r\n"].concat())
    }

    async fn play(&self, mut connection: TcpStream, sent: &AtomicU64) -> std::io::Result<()> {
        // Closing with unread bytes would send a reset.
        let _ = connection.read(&mut [0; 4096]).await?;
        for part in self.start.chunks(64 * 1024) {
            connection.write_all(part).await?;
            sent.fetch_add(part.len() as u64, Ordering::Relaxed);
        }
        let Then::Repeat(again, pause) = &self.then else { return Ok(()) };
        loop {
            if let Some(pause) = pause {
                tokio::time::sleep(*pause).await;
            }
            connection.write_all(again).await?;
            sent.fetch_add(again.len() as u64, Ordering::Relaxed);
        }
    }
}

/// The head of an HTML response with this status and further headers, one per line.
pub(crate) fn head(status: u16, headers: &str) -> String {
    let mut head = format!("HTTP/1.1 {status} X\r\ncontent-type: text/html\r\nconnection: close\r\n");
    for line in headers.lines() {
        head.push_str(line);
        head.push_str("\r\n");
    }
    head + "\r\n"
}

/// A running server, stopped when dropped.
pub(crate) struct Server {
    port: u16,
    sent: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let sent = Arc::new(AtomicU64::new(0));
        let (script, counter) = (Arc::new(script), Arc::clone(&sent));
        let task = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (script, counter) = (Arc::clone(&script), Arc::clone(&counter));
                // A client that closes the connection ends it.
                tokio::spawn(async move { script.play(connection, &counter).await });
            }
        });
        Self { port, sent, task }
    }

    pub(crate) fn url(&self) -> CanonicalUrl {
        format!("http://127.0.0.1:{}/", self.port).parse().unwrap()
    }

    /// Returns the number of bytes sent so far on all connections.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

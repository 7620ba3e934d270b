//! Connections, within limits that hold before anyone has said who they are.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Extensions;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

/// Connections at once; more wait to be accepted.
const CONNECTIONS: usize = 512;
/// How long a request's head may take to arrive, and a connection may be idle.
const HEAD: Duration = Duration::from_secs(30);
/// Header fields of a request.
const FIELDS: usize = 64;
/// The longest head of a request, in bytes.
const HEAD_BYTES: usize = 32 * 1024;
/// How long a caller may leave what is sent unread before the connection ends.
const STALL: Duration = Duration::from_secs(30);
/// How long answers may take that are under way when the API stops.
const GRACE: Duration = Duration::from_secs(10);
/// How long to wait when no connection can be accepted, because the process has too many files open.
const PAUSE: Duration = Duration::from_millis(100);

/// The address that a request came from.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub(crate) IpAddr);

impl Peer {
    /// That of the request with these extensions.
    pub fn of(extensions: &Extensions) -> IpAddr {
        extensions.get::<Self>().map_or(IpAddr::from([0; 4]), |peer| peer.0)
    }
}

/// Serves HTTP/1.1 on `listener` until `stop`; what is under way then may end.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    serve_with(listener, router, stop, STALL).await;
}

/// The same, where a caller may leave what is sent unread for as long as `stall`.
async fn serve_with(listener: TcpListener, router: Router, stop: CancellationToken, stall: Duration) {
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    // The semaphore is never closed.
    while let Some(Ok(place)) = stop.run_until_cancelled(Arc::clone(&places).acquire_owned()).await {
        let (stream, peer) = match stop.run_until_cancelled(listener.accept()).await {
            Some(Ok(accepted)) => accepted,
            Some(Err(error)) => {
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            None => break,
        };
        let router = TowerToHyperService::new(router.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer(peer.ip().to_canonical()));
            router.call(request)
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_headers(FIELDS);
        // A buffer may grow past its bound by half.
        http.max_buf_size(HEAD_BYTES).max_header_size(HEAD_BYTES);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(stall));
        let connection = graceful.watch(http.serve_connection(TokioIo::new(Box::pin(stream)), service));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                debug!(%peer, %error, "a connection broke");
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(GRACE, graceful.shutdown()).await.is_err() {
        warn!("some answers were cut off");
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::body::{Body, Bytes};
    use axum::routing::get;
    use futures::stream;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn a_caller_who_reads_nothing_does_not_keep_a_connection() {
        let ended = CancellationToken::new();
        let guarded = ended.clone();
        let endless = async move || {
            let guard = guarded.drop_guard();
            Body::from_stream(stream::repeat_with(move || {
                let _held = &guard;
                Ok::<_, Infallible>(Bytes::from_static(&[0; 64 * 1024]))
            }))
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let router = Router::new().route("/", get(endless));
        let server = tokio::spawn(serve_with(listener, router, stop.clone(), Duration::from_millis(50)));
        let mut caller = TcpStream::connect(address).await.unwrap();
        caller.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        tokio::time::timeout(Duration::from_secs(10), ended.cancelled()).await.unwrap();
        stop.cancel();
        server.await.unwrap();
    }

    #[tokio::test]
    async fn a_head_of_more_than_32_kib_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let server = tokio::spawn(serve(listener, Router::new(), stop.clone()));
        let status = async |bytes| {
            let mut caller = TcpStream::connect(address).await.unwrap();
            let field = "a".repeat(bytes);
            let head = format!("GET / HTTP/1.1\r\nHost: localhost\r\nA: {field}\r\n\r\n");
            caller.write_all(head.as_bytes()).await.unwrap();
            let mut status = [0; 12];
            caller.read_exact(&mut status).await.unwrap();
            String::from_utf8_lossy(&status[9..]).into_owned()
        };
        assert_eq!((status(HEAD_BYTES - 100).await, status(HEAD_BYTES).await), ("404".into(), "431".into()));
        stop.cancel();
        server.await.unwrap();
    }
}

//! Connections, within limits that hold before anyone has said who they are.

use std::net::IpAddr;
use std::time::Duration;

use axum::Router;
use axum::http::Extensions;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulConnection, GracefulShutdown};
use hyper_util::service::TowerToHyperService;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use trawl_common::web::paced::Paced;

use crate::limits::Caller;
use crate::places::Places;

/// Connections at once; more are refused.
const CONNECTIONS: usize = 512;
/// How long a request's head may take to arrive, and a connection may be idle.
const HEAD: Duration = Duration::from_secs(30);
/// Header fields of a request.
const FIELDS: usize = 64;
/// The longest head of a request, in bytes.
const HEAD_BYTES: usize = 32 * 1024;
/// How long a caller may keep what is sent waiting before the connection ends ([`Paced`]).
const STALL: Duration = Duration::from_secs(30);
/// What is sent and not yet read is kept by the system up to about this many bytes. It is small, so that whether a caller reads is seen early.
const UNREAD: usize = 64 * 1024;
/// What somebody is answered for whom there is no connection.
const REFUSED: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
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

/// The same, where a caller may keep what is sent waiting for as long as `stall`.
async fn serve_with(listener: TcpListener, router: Router, stop: CancellationToken, stall: Duration) {
    let graceful = GracefulShutdown::new();
    let places = Places::new(CONNECTIONS, 0, "connections");
    loop {
        let (stream, peer) = match stop.run_until_cancelled(listener.accept()).await {
            Some(Ok((stream, peer))) => (stream, peer.ip().to_canonical()),
            Some(Err(error)) => {
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            None => break,
        };
        let place = match places.take_as(&Caller::Address(peer)) {
            Ok(place) => place,
            Err(why) => {
                debug!(%peer, ?why, "refused a connection");
                // Whoever does not read it at once is refused as well.
                let _ = stream.try_write(REFUSED);
                continue;
            }
        };
        let connection = graceful.watch(connection(stream, peer, router.clone(), stall));
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

/// A connection, within its limits.
fn connection(
    stream: TcpStream,
    peer: IpAddr,
    router: Router,
    stall: Duration,
) -> impl GracefulConnection<Error = hyper::Error> {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        router.call(request)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_headers(FIELDS);
    // A buffer may grow past its bound by half.
    http.max_buf_size(HEAD_BYTES).max_header_size(HEAD_BYTES);
    // A connection works without it as well.
    let _ = SockRef::from(&stream).set_send_buffer_size(UNREAD);
    http.serve_connection(TokioIo::new(Paced::new(stream, stall)), service)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::body::{Body, Bytes};
    use axum::routing::get;
    use futures::stream;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

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
    async fn one_address_gets_half_of_the_connections_and_others_are_answered_beside_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let server = tokio::spawn(serve(listener, Router::new(), stop.clone()));
        let status = async |caller: &mut TcpStream| {
            caller.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
            let mut status = [0; 12];
            caller.read_exact(&mut status).await.unwrap();
            String::from_utf8_lossy(&status[9..]).into_owned()
        };
        let mut kept = Vec::new();
        for _ in 0..CONNECTIONS / 2 {
            let mut caller = TcpStream::connect(address).await.unwrap();
            assert_eq!(status(&mut caller).await, "404");
            kept.push(caller);
        }
        let mut refused = TcpStream::connect(address).await.unwrap();
        let mut answer = Vec::new();
        refused.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, REFUSED);
        kept.pop();
        // Its end is seen a moment later.
        while status(&mut TcpStream::connect(address).await.unwrap()).await != "404" {}
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

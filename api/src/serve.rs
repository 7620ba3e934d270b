//! Connections, with limits that hold before callers are authenticated.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::http::HeaderMap;
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
use trawl_common::settings::Network;
use trawl_common::web::newcomers::Newcomers;
use trawl_common::web::paced::Paced;

use crate::limits::Caller;
use crate::peer::{Connection, Peer};
use crate::permits::{Permit, Permits, Refused};
use crate::proxies;

/// Maximum number of connections; more are refused, unless an unauthenticated one can be closed.
const MAX_CONNECTIONS: usize = 512;
/// Maximum time for the head of a request to arrive, and for a connection to be idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of header fields of a request.
const MAX_FIELDS: usize = 64;
/// Maximum length of the head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 32 * 1024;
/// The time that a caller may delay the data sent to it before the connection is closed ([`Paced`]).
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Approximate number of unread bytes that the system buffers. It is small, so that a caller who does not
/// read is noticed early.
const UNREAD_BYTES: usize = 64 * 1024;
/// The response to a caller for whom there is no connection.
const REFUSED: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
/// The time that responses in progress get when the API stops.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
/// Delay before the next attempt to accept a connection when the process has too many files open.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Serves HTTP/1.1 on `listener` until `stop`; then lets requests in progress end. Proxies at the addresses
/// `trusted` state the origin of a request.
pub async fn serve(listener: TcpListener, router: Router, trusted: Vec<Network>, stop: CancellationToken) {
    serve_with(listener, router, trusted.into(), stop, STALL_TIMEOUT).await;
}

/// Like [`serve`], where a caller may delay the data sent to it for as long as `stall`.
async fn serve_with(
    listener: TcpListener,
    router: Router,
    trusted: Arc<[Network]>,
    stop: CancellationToken,
    stall: Duration,
) {
    let graceful = GracefulShutdown::new();
    let permits = Permits::new(MAX_CONNECTIONS, 0, "connections");
    let newcomers = Arc::new(Newcomers::default());
    loop {
        let (stream, peer) = match stop.run_until_cancelled(listener.accept()).await {
            Some(Ok((stream, peer))) => (stream, peer.ip().to_canonical()),
            Some(Err(error)) => {
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
            None => break,
        };
        let permit = match permit(&permits, &newcomers, &Caller::Address(peer)) {
            Ok(permit) => permit,
            Err(why) => {
                debug!(%peer, ?why, "refused a connection");
                // A caller who does not read it at once is refused all the same.
                let _ = stream.try_write(REFUSED);
                continue;
            }
        };
        let known = Arc::new(Connection { newcomer: newcomers.enter(permit), permit: OnceLock::new() });
        let origin = Origin { peer, trusted: Arc::clone(&trusted), connection: Arc::clone(&known) };
        let connection = graceful.watch(connection(stream, origin, router.clone(), stall));
        tokio::spawn(async move {
            tokio::select! {
                ended = connection => if let Err(error) = ended {
                    debug!(%peer, %error, "a connection broke");
                },
                () = known.newcomer.ended() => debug!(%peer, "a connection of nobody known ended in favour of another"),
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(SHUTDOWN_GRACE, graceful.shutdown()).await.is_err() {
        warn!("some answers were cut off");
    }
}

/// Returns a permit for a connection of `caller`: a free one, or that of the oldest unauthenticated
/// connection. If the caller has too many, only its own are considered.
fn permit(permits: &Arc<Permits>, newcomers: &Newcomers<Permit>, caller: &Caller) -> Result<Permit, Refused> {
    loop {
        let refused = match permits.take_as(caller) {
            Err(refused) => refused,
            permit => return permit,
        };
        let may_end = |permit: &Permit| refused == Refused::Full || permit.is_of(caller);
        if !newcomers.end_oldest(may_end) {
            return Err(refused);
        }
    }
}

/// The origin of a connection's requests.
struct Origin {
    peer: IpAddr,
    trusted: Arc<[Network]>,
    connection: Arc<Connection>,
}

impl Origin {
    fn peer(&self, headers: &HeaderMap) -> Peer {
        let address = proxies::origin(self.peer, headers, &self.trusted);
        Peer { address, connection: Arc::clone(&self.connection) }
    }
}

/// Serves a connection within its limits.
fn connection(
    stream: TcpStream,
    origin: Origin,
    router: Router,
    stall: Duration,
) -> impl GracefulConnection<Error = hyper::Error> {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let peer = origin.peer(request.headers());
        request.extensions_mut().insert(peer);
        router.call(request)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_headers(MAX_FIELDS);
    // A buffer may grow beyond its limit by half.
    http.max_buf_size(MAX_HEAD_BYTES).max_header_size(MAX_HEAD_BYTES);
    // A connection works without it as well.
    let _ = SockRef::from(&stream).set_send_buffer_size(UNREAD_BYTES);
    http.serve_connection(TokioIo::new(Paced::new(stream, stall)), service)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::net::SocketAddr;

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
        let server =
            tokio::spawn(serve_with(listener, router, [].into(), stop.clone(), Duration::from_millis(50)));
        let mut caller = TcpStream::connect(address).await.unwrap();
        caller.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        tokio::time::timeout(Duration::from_secs(10), ended.cancelled()).await.unwrap();
        stop.cancel();
        server.await.unwrap();
    }

    /// Starts an API that treats callers of `/known` as authenticated.
    async fn serving() -> (SocketAddr, CancellationToken) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let known = async |request: axum::extract::Request| Peer::note_known(request.extensions());
        let router = Router::new().route("/known", get(known));
        tokio::spawn(serve(listener, router, Vec::new(), stop.clone()));
        (address, stop)
    }

    async fn status(caller: &mut TcpStream, path: &str) -> String {
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        caller.write_all(head.as_bytes()).await.unwrap();
        let mut status = [0; 12];
        caller.read_exact(&mut status).await.unwrap();
        String::from_utf8_lossy(&status[9..]).into_owned()
    }

    #[tokio::test]
    async fn one_address_gets_half_of_the_connections() {
        let (address, stop) = serving().await;
        let mut kept = Vec::new();
        for _ in 0..MAX_CONNECTIONS / 2 {
            let mut caller = TcpStream::connect(address).await.unwrap();
            assert_eq!(status(&mut caller, "/known").await, "200");
            kept.push(caller);
        }
        let mut refused = TcpStream::connect(address).await.unwrap();
        let mut answer = Vec::new();
        refused.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, REFUSED);
        kept.pop();
        // Its end is noticed a moment later.
        while status(&mut TcpStream::connect(address).await.unwrap(), "/known").await != "200" {}
        stop.cancel();
    }

    #[tokio::test]
    async fn half_heads_and_callers_of_nobody_known_hold_up_nobody() {
        let (address, stop) = serving().await;
        let mut known = TcpStream::connect(address).await.unwrap();
        assert_eq!(status(&mut known, "/known").await, "200");
        let mut held = Vec::new();
        for count in 0..2 * MAX_CONNECTIONS {
            let mut caller = TcpStream::connect(address).await.unwrap();
            let head =
                if count % 2 == 0 { "GET / HTTP/1.1\r\nA: " } else { "GET / HTTP/1.1\r\nHost: x\r\n\r\n" };
            let _ = caller.write_all(head.as_bytes()).await;
            held.push(caller);
        }
        assert_eq!(status(&mut TcpStream::connect(address).await.unwrap(), "/known").await, "200");
        let mut rest = Vec::new();
        let first = held.first_mut().unwrap().read_to_end(&mut rest).await;
        assert!(rest.is_empty() || first.is_err(), "the oldest has made room");
        // The rest of its first response comes before this one.
        known
            .write_all(b"GET /known HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .await
            .unwrap();
        known.read_to_end(&mut rest).await.unwrap();
        assert!(String::from_utf8_lossy(&rest).contains("200 OK"), "who is known goes on");
        stop.cancel();
    }

    #[tokio::test]
    async fn a_head_of_more_than_32_kib_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let server = tokio::spawn(serve(listener, Router::new(), Vec::new(), stop.clone()));
        let status = async |bytes| {
            let mut caller = TcpStream::connect(address).await.unwrap();
            let field = "a".repeat(bytes);
            let head = format!("GET / HTTP/1.1\r\nHost: localhost\r\nA: {field}\r\n\r\n");
            caller.write_all(head.as_bytes()).await.unwrap();
            let mut status = [0; 12];
            caller.read_exact(&mut status).await.unwrap();
            String::from_utf8_lossy(&status[9..]).into_owned()
        };
        assert_eq!(
            (status(MAX_HEAD_BYTES - 100).await, status(MAX_HEAD_BYTES).await),
            ("404".into(), "431".into())
        );
        stop.cancel();
        server.await.unwrap();
    }
}

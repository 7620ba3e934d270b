//! Connections, within limits that hold before anyone has said who they are.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::http::{Extensions, HeaderMap};
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
use trawl_common::web::newcomers::{Newcomer, Newcomers};
use trawl_common::web::paced::Paced;

use crate::limits::Caller;
use crate::places::{Place, Places, Refused};
use crate::proxies;

/// Connections at once; more are refused, unless one can end of which it is not known whose it is.
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

/// Where a request came from.
#[derive(Clone)]
pub struct Peer {
    address: IpAddr,
    connection: Arc<Connection>,
}

impl Peer {
    /// The address that the request with these extensions came from.
    pub fn of(extensions: &Extensions) -> IpAddr {
        extensions.get::<Self>().map_or(IpAddr::from([0; 4]), |peer| peer.address)
    }

    /// Notes that it is known who sent the request with these extensions: their connection does not end in favour of another.
    pub fn note_known(extensions: &Extensions) {
        if let Some(Self { connection, .. }) = extensions.get()
            && let Some(place) = connection.newcomer.leave()
        {
            let _ = connection.place.set(place);
        }
    }
}

/// A connection, and its place once it is known whose it is.
struct Connection {
    newcomer: Newcomer<Place>,
    place: OnceLock<Place>,
}

/// Serves HTTP/1.1 on `listener` until `stop`; what is under way then may end. Proxies at the addresses `trusted` tell from where
/// a request came to them.
pub async fn serve(listener: TcpListener, router: Router, trusted: Vec<Network>, stop: CancellationToken) {
    serve_with(listener, router, trusted.into(), stop, STALL).await;
}

/// The same, where a caller may keep what is sent waiting for as long as `stall`.
async fn serve_with(
    listener: TcpListener,
    router: Router,
    trusted: Arc<[Network]>,
    stop: CancellationToken,
    stall: Duration,
) {
    let graceful = GracefulShutdown::new();
    let places = Places::new(CONNECTIONS, 0, "connections");
    let newcomers = Arc::new(Newcomers::default());
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
        let place = match place(&places, &newcomers, &Caller::Address(peer)) {
            Ok(place) => place,
            Err(why) => {
                debug!(%peer, ?why, "refused a connection");
                // Whoever does not read it at once is refused as well.
                let _ = stream.try_write(REFUSED);
                continue;
            }
        };
        let known = Arc::new(Connection { newcomer: newcomers.enter(place), place: OnceLock::new() });
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
    if tokio::time::timeout(GRACE, graceful.shutdown()).await.is_err() {
        warn!("some answers were cut off");
    }
}

/// A place for a connection of `caller`: a free one, or that of the oldest connection of which it is not known whose it is. Where the caller
/// has too many, it is one of the caller's own.
fn place(places: &Arc<Places>, newcomers: &Newcomers<Place>, caller: &Caller) -> Result<Place, Refused> {
    loop {
        let refused = match places.take_as(caller) {
            Err(refused) => refused,
            place => return place,
        };
        let may_end = |place: &Place| refused == Refused::Full || place.is_of(caller);
        if !newcomers.end_oldest(may_end) {
            return Err(refused);
        }
    }
}

/// Where the requests of a connection come from.
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

/// A connection, within its limits.
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

    /// An API that knows whoever asks for `/known`.
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
        for _ in 0..CONNECTIONS / 2 {
            let mut caller = TcpStream::connect(address).await.unwrap();
            assert_eq!(status(&mut caller, "/known").await, "200");
            kept.push(caller);
        }
        let mut refused = TcpStream::connect(address).await.unwrap();
        let mut answer = Vec::new();
        refused.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, REFUSED);
        kept.pop();
        // Its end is seen a moment later.
        while status(&mut TcpStream::connect(address).await.unwrap(), "/known").await != "200" {}
        stop.cancel();
    }

    #[tokio::test]
    async fn half_heads_and_callers_of_nobody_known_hold_up_nobody() {
        let (address, stop) = serving().await;
        let mut known = TcpStream::connect(address).await.unwrap();
        assert_eq!(status(&mut known, "/known").await, "200");
        let mut held = Vec::new();
        for count in 0..2 * CONNECTIONS {
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
        // The rest of its first answer comes before this one.
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
        assert_eq!((status(HEAD_BYTES - 100).await, status(HEAD_BYTES).await), ("404".into(), "431".into()));
        stop.cancel();
        server.await.unwrap();
    }
}

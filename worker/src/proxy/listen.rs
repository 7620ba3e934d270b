//! Connections of programs, with limits that hold before they are authenticated.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SetOnce};
use tokio::time::sleep;
use tracing::{debug, warn};
use trawl_common::web::newcomers::{Newcomer, Newcomers};
use trawl_common::web::paced::Paced;

use super::credentials::Run;
use super::refusal::{Body, Refusal};
use super::{HandlerProxy, forward, tunnel};

/// Maximum number of unauthenticated connections; one more ends the oldest of them.
const MAX_UNAUTHENTICATED: usize = 256;
/// Maximum time for the head of a request to arrive, and for a connection to be idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum number of header fields of a request.
const MAX_FIELDS: usize = 100;
/// Maximum length of the head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// The time that a program may delay the data sent to it before its connection is closed ([`Paced`]).
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Delay before the next attempt to accept a connection when the process has too many files open.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Starts to listen, and returns the address.
pub(super) fn start(proxy: &Arc<HandlerProxy>) -> io::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let listener = TcpListener::from_std(listener)?;
    debug!(%address, "the proxy for programs listens");
    let accepting = accept(Arc::clone(proxy), listener);
    let stop = proxy.stop.clone();
    proxy.tasks.spawn(async move {
        stop.run_until_cancelled(accepting).await;
    });
    Ok(address)
}

async fn accept(proxy: Arc<HandlerProxy>, listener: TcpListener) {
    let (permits, newcomers) =
        (Arc::new(Semaphore::new(MAX_UNAUTHENTICATED)), Arc::new(Newcomers::default()));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let permit = loop {
                    match Arc::clone(&permits).try_acquire_owned() {
                        Err(_) if newcomers.end_oldest(|_| true) => {}
                        permit => break permit,
                    }
                };
                // All permits are held by unauthenticated connections, so one was free, or became so.
                let Ok(permit) = permit else { continue };
                let _ = stream.set_nodelay(true);
                let newcomer = newcomers.enter(permit);
                let (serving, stop) = (serve(Arc::clone(&proxy), stream, newcomer), proxy.stop.clone());
                proxy.tasks.spawn(async move {
                    stop.run_until_cancelled(serving).await;
                });
            }
            Err(error) => {
                warn!(%error, "the proxy cannot accept a connection of a program");
                sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

/// Answers the requests of one connection until it ends, or its run does.
pub(super) async fn serve<S>(proxy: Arc<HandlerProxy>, stream: S, newcomer: Newcomer<OwnedSemaphorePermit>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connection = Arc::new(Connection { newcomer, of: SetOnce::new() });
    let service = service_fn(|request| {
        let (proxy, connection) = (Arc::clone(&proxy), Arc::clone(&connection));
        async move { Ok::<_, Infallible>(handle(&proxy, &connection, request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_headers(MAX_FIELDS);
    // A buffer may grow beyond its limit by half.
    http.max_buf_size(MAX_HEAD_BYTES).max_header_size(MAX_HEAD_BYTES);
    let serving =
        http.serve_connection(TokioIo::new(Paced::new(stream, STALL_TIMEOUT)), service).with_upgrades();
    tokio::select! {
        ended = serving => if let Err(error) = ended {
            debug!(%error, "a program's connection to the proxy broke");
        },
        () = connection.run_ended() => {}
        () = connection.newcomer.ended() => debug!("a connection of nobody known ended in favour of another"),
    }
}

async fn handle(
    proxy: &Arc<HandlerProxy>,
    connection: &Arc<Connection>,
    request: Request<Incoming>,
) -> Response<Body> {
    let answered = async {
        let run = proxy.credentials.run(request.headers()).ok_or_else(Refusal::unknown)?;
        connection.attach(&run)?;
        let name = (request.method().clone(), request.uri().clone());
        let answered = match *request.method() {
            Method::CONNECT => tunnel::open(proxy, &run, connection, request).await,
            _ => forward::forward(proxy, &run, request).await,
        };
        if let Err(refusal) = &answered {
            let (method, url, task) = (name.0, name.1, run.task.as_deref());
            debug!(%method, %url, task, why = refusal.why(), "a program's request is refused");
        }
        answered
    };
    answered.await.unwrap_or_else(Refusal::into_response)
}

/// A connection, with its run once a request is authenticated. Until then it has a permit for unauthenticated
/// ones, afterwards one of its run's.
pub(super) struct Connection {
    newcomer: Newcomer<OwnedSemaphorePermit>,
    of: SetOnce<(Arc<Run>, OwnedSemaphorePermit)>,
}

impl Connection {
    /// Assigns the connection to this run, if it has no other and the run may have another connection.
    fn attach(&self, run: &Arc<Run>) -> Result<(), Refusal> {
        if let Some((of, _)) = self.of.get() {
            return if Arc::ptr_eq(of, run) { Ok(()) } else { Err(Refusal::unknown()) };
        }
        let permit = Arc::clone(&run.connections).try_acquire_owned().map_err(|_| Refusal::crowded())?;
        // The requests of a connection come one after another.
        let _ = self.of.set((Arc::clone(run), permit));
        drop(self.newcomer.leave());
        Ok(())
    }

    async fn run_ended(&self) {
        self.of.wait().await.0.ended.cancelled().await;
    }
}

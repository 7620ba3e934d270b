//! Connections of programs, within limits that hold before anyone has said who they are.

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

/// Connections at once of which it is not known whose they are; one more ends the oldest of them.
const UNKNOWN: usize = 256;
/// How long the head of a request may take to arrive, and a connection may be idle.
const HEAD: Duration = Duration::from_secs(15);
/// Header fields of a request.
const FIELDS: usize = 100;
/// The longest head of a request, in bytes.
const HEAD_BYTES: usize = 64 * 1024;
/// How long a program may keep what is sent waiting before its connection ends ([`Paced`]).
const STALL: Duration = Duration::from_secs(30);
/// How long to wait when no connection can be accepted, because the process has too many files open.
const PAUSE: Duration = Duration::from_millis(100);

/// Begins to listen. Returns where.
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
    let (permits, newcomers) = (Arc::new(Semaphore::new(UNKNOWN)), Arc::new(Newcomers::default()));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let permit = loop {
                    match Arc::clone(&permits).try_acquire_owned() {
                        Err(_) if newcomers.end_oldest(|_| true) => {}
                        permit => break permit,
                    }
                };
                // All permits are newcomers', so one was free, or became so.
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
                sleep(PAUSE).await;
            }
        }
    }
}

/// Answers the requests of one connection until it ends, or the run that it is of.
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
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_headers(FIELDS);
    // A buffer may grow past its bound by half.
    http.max_buf_size(HEAD_BYTES).max_header_size(HEAD_BYTES);
    let serving = http.serve_connection(TokioIo::new(Paced::new(stream, STALL)), service).with_upgrades();
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

/// A connection, and whose it is once a request has said so. Until then it has a permit of those for unknown ones, from then on one of its
/// run's.
pub(super) struct Connection {
    newcomer: Newcomer<OwnedSemaphorePermit>,
    of: SetOnce<(Arc<Run>, OwnedSemaphorePermit)>,
}

impl Connection {
    /// Notes that it is of this run, if it is no other's and the run may have another connection.
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

//! A connection on which a program and a host exchange arbitrary data (`CONNECT`, RFC 9110 9.3.6). Its
//! content cannot be seen, as it is TLS. So the connection waits for a slot, and each further exchange on it
//! for another one.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::time::{Instant, interval};
use tracing::debug;
use trawl_common::host_schedules::HostPermit;
use trawl_common::web::url::CanonicalUrl;

use super::credentials::Run;
use super::flights::Flights;
use super::listen::Connection;
use super::refusal::{Body, Refusal, empty};
use super::{HandlerProxy, permits};

/// Maximum time that a tunnel may be idle.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum lifetime of a tunnel.
const MAX_LIFETIME: Duration = Duration::from_secs(3_600);
/// An exchange is over when the host has sent something, and then nothing for this time. It no longer counts
/// as in flight then.
const QUIET_TIMEOUT: Duration = Duration::from_millis(250);
/// Interval at which to check these times.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of bytes read at once.
const BUFFER: usize = 16 * 1024;

/// Connects a program to a host, when that may be asked.
pub(super) async fn open(
    proxy: &Arc<HandlerProxy>,
    run: &Arc<Run>,
    connection: &Arc<Connection>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Refusal> {
    let url = destination(request.uri())?;
    let permit = permits::exchange(proxy, &run.user, &url).await?;
    let server = run.user.passage.connect(&url).await?;
    let _ = server.set_nodelay(true);
    let (proxy_of, run, connection) = (Arc::clone(proxy), Arc::clone(run), Arc::clone(connection));
    let tunnel = Tunnel { proxy: proxy_of, url, state: Mutex::new(State::new(permit)), run };
    proxy.tasks.spawn(async move {
        let ended = tunnel.run.ended.clone();
        let carrying = async {
            // Fails if the program has gone meanwhile.
            if let Ok(client) = hyper::upgrade::on(request).await {
                tunnel.carry(TokioIo::new(client), server).await;
            }
        };
        ended.run_until_cancelled(carrying).await;
        // Its permit is held until now.
        drop(connection);
    });
    Ok(Response::new(empty()))
}

/// Returns the host and port of the tunnel's destination, as a URL.
fn destination(uri: &Uri) -> Result<CanonicalUrl, Refusal> {
    let nonsense = |why: &str| Refusal::nonsense(format!("CONNECT {uri}: {why}"));
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'));
    let authority = authority.ok_or_else(|| nonsense("write HOST:PORT"))?;
    authority.port_u16().ok_or_else(|| nonsense("write HOST:PORT"))?;
    CanonicalUrl::parse(&format!("https://{authority}/")).map_err(|error| nonsense(&error.to_string()))
}

/// A tunnel of a run.
struct Tunnel {
    proxy: Arc<HandlerProxy>,
    run: Arc<Run>,
    url: CanonicalUrl,
    state: Mutex<State>,
}

/// The state of a tunnel.
struct State {
    flights: Flights,
    /// The permit of the exchange in progress.
    permit: Option<HostPermit>,
    /// Whether the host has sent something in this exchange.
    is_answered: bool,
    /// The time of the last data.
    last: Instant,
}

impl State {
    fn new(permit: HostPermit) -> Self {
        Self { flights: Flights::default(), permit: Some(permit), is_answered: false, last: Instant::now() }
    }

    /// Records data from the client. Returns whether a further exchange begins.
    fn client_sent(&mut self, bytes: &[u8]) -> bool {
        self.last = Instant::now();
        self.flights.client_sent(bytes)
    }

    fn server_sent(&mut self) {
        self.last = Instant::now();
        self.is_answered = true;
        self.flights.server_sent();
    }

    fn begin(&mut self, permit: HostPermit) {
        (self.permit, self.is_answered, self.last) = (Some(permit), false, Instant::now());
    }
}

impl Tunnel {
    /// Copies data in both directions, until either side closes the connection, or it has lasted too long.
    async fn carry(&self, client: impl AsyncRead + AsyncWrite, server: impl AsyncRead + AsyncWrite) {
        let (from_client, mut to_client) = split(client);
        let (from_server, to_server) = split(server);
        let up = async {
            match self.upwards(from_client, to_server).await {
                // The program sends no more, but may still receive data.
                Ok(()) => pending().await,
                Err(error) => debug!(url = %self.url, %error, "a tunnel of a program ends"),
            }
        };
        tokio::select! {
            () = up => {}
            _ = self.downwards(from_server, &mut to_client) => {}
            () = self.wait_for_end() => {}
        }
        let _ = to_client.shutdown().await;
    }

    async fn upwards(
        &self,
        mut client: impl AsyncRead + Unpin,
        mut server: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER];
        loop {
            let read = client.read(&mut buffer).await?;
            if read == 0 {
                return server.shutdown().await;
            }
            let is_further = self.state.lock().client_sent(&buffer[..read]);
            if is_further {
                // The previous exchange is over.
                self.state.lock().permit = None;
                let permit = permits::exchange(&self.proxy, &self.run.user, &self.url).await;
                let permit = permit.map_err(|refusal| io::Error::other(refusal.why().to_owned()))?;
                self.state.lock().begin(permit);
            }
            server.write_all(&buffer[..read]).await?;
        }
    }

    async fn downwards(
        &self,
        mut server: impl AsyncRead + Unpin,
        mut client: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER];
        loop {
            let read = server.read(&mut buffer).await?;
            if read == 0 {
                return Ok(());
            }
            self.state.lock().server_sent();
            client.write_all(&buffer[..read]).await?;
        }
    }

    /// Returns when the tunnel has lasted, or was idle, for too long. Meanwhile drops the permits of
    /// exchanges that are over.
    async fn wait_for_end(&self) {
        let begun = Instant::now();
        let mut looks = interval(CHECK_INTERVAL);
        loop {
            looks.tick().await;
            let mut state = self.state.lock();
            let quiet = state.last.elapsed();
            if quiet >= IDLE_TIMEOUT || begun.elapsed() >= MAX_LIFETIME {
                return;
            }
            if state.is_answered && quiet >= QUIET_TIMEOUT {
                state.permit = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{DuplexStream, duplex};
    use tokio::time::sleep;

    use super::super::tests::in_test_time;
    use super::*;

    /// Returns the time after which a tunnel ends whose host does this.
    async fn ends_after(host: impl AsyncFnOnce(DuplexStream)) -> Duration {
        let (proxy, run) = in_test_time(|_| {});
        let url: CanonicalUrl = "https://192.0.2.1/".parse().unwrap();
        let permit = permits::exchange(&proxy, &run.user, &url).await.unwrap();
        let tunnel = Tunnel { proxy, run, url, state: Mutex::new(State::new(permit)) };
        let ((near, mut program), (server, far)) = (duplex(1024), duplex(1024));
        let begun = Instant::now();
        let reading = async {
            while program.read_u8().await.is_ok() {}
            pending().await
        };
        tokio::select! {
            () = tunnel.carry(near, server) => begun.elapsed(),
            () = host(far) => unreachable!("it never ends"),
            () = reading => unreachable!("it never ends"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_tunnel_on_which_nobody_speaks_ends_after_five_minutes() {
        let silent = async |_host: DuplexStream| pending().await;
        assert_eq!(ends_after(silent).await.as_secs(), 300);
    }

    #[tokio::test(start_paused = true)]
    async fn a_tunnel_ends_after_an_hour_whatever_is_said_on_it() {
        let talks = async |mut host: DuplexStream| {
            while host.write_u8(0).await.is_ok() {
                sleep(Duration::from_secs(60)).await;
            }
            pending().await
        };
        assert_eq!(ends_after(talks).await.as_secs(), 3_600);
    }
}

//! Connections to the broker: to the node used last, or the next one of its cluster.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_rs::{Runtime, Tokio};
use futures::FutureExt;
use futures::future::BoxFuture;
use lapin::ConnectionProperties;
use lapin::tcp::AsyncTcpStream;
use lapin::uri::AMQPUri;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::compat::TokioAsyncReadCompatExt;
use tracing::debug;
use trawl_common::metrics;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::{self, ServerUrl};

use super::erased::Connection;
use super::screen::{ByteStream, Screened, Screening, ServerVersion};
use crate::tls::{self, Authority};

/// Time limit for accepting a connection; after it, a node counts as unavailable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The heartbeat in seconds: a node that is silent for two of these is gone. A worker's URL always names its own
/// (`RabbitMq::noticing`).
const HEARTBEAT: u16 = 10;

/// The nodes of the broker, and the certificates to trust.
pub(super) struct Endpoint {
    nodes: Vec<ServerUrl>,
    /// Set only for `amqps`. The system's certificates are hundreds of files, so they are read once.
    tls: Option<TlsConnector>,
    /// The node that is tried first.
    current: AtomicUsize,
    version: ServerVersion,
}

impl Endpoint {
    /// Reads the certificates; connects to nothing yet.
    pub(super) fn new(settings: &settings::RabbitMq) -> Result<Self> {
        let settings::RabbitMq { url, nodes, ca, .. } = settings;
        let others = nodes.iter().map(|node| url.at(node));
        let authority = ca.as_deref().map(|path| Authority::read("rabbitmq.ca", path)).transpose()?;
        let tls = url.is_tls().then(|| TlsConnector::from(Arc::new(tls::client(authority.as_ref()))));
        Ok(Self {
            nodes: std::iter::once(url.clone()).chain(others).collect(),
            tls,
            current: AtomicUsize::default(),
            version: ServerVersion::default(),
        })
    }

    /// Returns the version of the node that was connected to last, if any.
    pub(super) fn server_version(&self) -> Option<String> {
        self.version.get()
    }

    /// Opens one connection, named so that the management page shows its owner. Each node is tried once; a refusal
    /// by one of them (a password, TLS) is an error at once.
    pub(super) async fn open(&self, name: &str) -> Result<Connection> {
        let first = self.current.load(Ordering::Relaxed);
        let mut away = None;
        for at in (first..first + self.nodes.len()).map(|at| at % self.nodes.len()) {
            match self.open_at(&self.nodes[at], name).await {
                Ok(connection) => {
                    self.current.store(at, Ordering::Relaxed);
                    return Ok(connection);
                }
                Err(error) if error.is_temporary() && self.nodes.len() > 1 => {
                    debug!(%error, "a node is away; trying the next");
                    away = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        let text = away.map_or_else(|| "no node is named".to_owned(), |error| error.to_string());
        Err(Error::new(
            ErrorKind::Unavailable,
            format!("no node of rabbitmq can be reached; the last: {text}"),
        ))
    }

    async fn open_at(&self, url: &ServerUrl, name: &str) -> Result<Connection> {
        let connecting =
            tokio::time::timeout(CONNECT_TIMEOUT, connect(url, name, self.tls.clone(), self.version.clone()));
        match connecting.await {
            Ok(Ok(connection)) => {
                metrics::connected();
                Ok(Connection::new(connection))
            }
            Ok(Err(error)) => {
                let hint = match &error {
                    error if is_tls(error) => {
                        "is its certificate from whom this machine, or rabbitmq.ca, trusts, and for this name?"
                    }
                    _ => "is it running there? (rabbitmq.url, RABBITMQ_URL)",
                };
                Err(Error::new(kind(&error), format!("rabbitmq at {url}: {error}: {hint}")))
            }
            Err(_) => {
                let text = format!("rabbitmq at {url}: no answer within {} s", CONNECT_TIMEOUT.as_secs());
                Err(Error::new(ErrorKind::Unavailable, text))
            }
        }
    }
}

/// Opens a connection whose frames are screened before the client library reads them.
fn connect<'a>(
    url: &'a ServerUrl,
    name: &'a str,
    tls: Option<TlsConnector>,
    version: ServerVersion,
) -> BoxFuture<'a, lapin::Result<lapin::Connection>> {
    let connecting = async move {
        let properties = ConnectionProperties::default().with_connection_name(name.into());
        let mut uri: AMQPUri = url.reveal().parse().map_err(io::Error::other)?;
        uri.query.heartbeat.get_or_insert(HEARTBEAT);
        let screening = Runtime::new(Screening(Tokio::current()));
        let open = async move |uri: AMQPUri, _| {
            let stream = open_stream(&uri.authority.host, uri.authority.port, tls.as_ref()).await?;
            Ok(AsyncTcpStream::Plain(Screened::new(stream, version.clone())))
        };
        lapin::Connection::connector(uri, screening, open, properties).await
    };
    connecting.boxed()
}

async fn open_stream(host: &str, port: u16, tls: Option<&TlsConnector>) -> io::Result<Box<dyn ByteStream>> {
    // An IPv6 address in a URL is in brackets.
    let host = host.trim_matches(['[', ']']);
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    let Some(tls) = tls else { return Ok(Box::new(stream.compat())) };
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    Ok(Box::new(tls.connect(name, stream).await?.compat()))
}

/// Returns the error for a failure on an open connection.
pub(super) fn failed(error: lapin::Error) -> Error {
    Error::caused_by(kind(&error), "rabbitmq", &error)
}

fn is_tls(error: &lapin::Error) -> bool {
    matches!(error.kind(), lapin::ErrorKind::IOError(error) if tls::is_refusal(&**error))
}

fn kind(error: &lapin::Error) -> ErrorKind {
    use lapin::ErrorKind as Lapin;
    use lapin::protocol::{AMQPErrorKind, AMQPHardError, AMQPSoftError};
    match error.kind() {
        Lapin::ProtocolError(protocol) => match protocol.kind() {
            AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED | AMQPSoftError::PRECONDITIONFAILED) => {
                ErrorKind::Refused
            }
            AMQPErrorKind::Hard(AMQPHardError::NOTALLOWED) => ErrorKind::Refused,
            _ => ErrorKind::Unavailable,
        },
        _ if is_tls(error) => ErrorKind::Refused,
        _ => ErrorKind::Unavailable,
    }
}

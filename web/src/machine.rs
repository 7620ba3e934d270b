//! The resources of this machine that a request needs: files, memory, threads, ports, a resolver. If one is lacking,
//! neither the host nor the URL is to blame.

use std::error::Error;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use rustix::io::Errno;
use tower::{BoxError, Layer, Service};
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::open_files::{Opening, TooFewFiles};

use super::resolver::NoResolver;

/// Returns the failure of a request for which this machine lacked a resource, if the causes of `error` show that.
/// `addresses` are those of the host.
pub(super) fn failure(error: &(dyn Error + 'static), addresses: &[IpAddr]) -> Option<Failure> {
    let lack = |detail: &dyn std::fmt::Display| Some(Failure::new(Class::Machine, detail));
    causes(error).find_map(|cause| {
        if cause.is::<TooFewFiles>() || cause.is::<NoResolver>() {
            return lack(&cause);
        }
        match Errno::from_io_error(cause.downcast_ref()?)? {
            Errno::MFILE => lack(&TooFewFiles::now()),
            Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::AGAIN => lack(&cause),
            // Without a local address of the host's family none of its URLs can ever be requested from here, so that is
            // not temporary.
            Errno::ADDRNOTAVAIL if addresses.iter().any(|address| has_source(*address)) => {
                lack(&"no local port is free for another connection to this address")
            }
            _ => None,
        }
    })
}

/// Returns the error and its causes, outermost first.
pub(super) fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        // The source of an I/O error that wraps another is the wrapped error's source, so the wrapped error itself
        // would be skipped.
        match error.downcast_ref().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        }
    })
}

/// Whether this machine has a local address from which `address` can be reached.
fn has_source(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Connecting a UDP socket sends nothing.
    let connect = |socket: UdpSocket| socket.connect(SocketAddr::new(address, 9));
    UdpSocket::bind(SocketAddr::new(any, 0)).and_then(connect).is_ok()
}

/// Keeps a client from opening a connection when this process has no free file descriptor for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct WithinOpenFiles;

/// A connector with this limit.
#[derive(Clone, Debug)]
pub(super) struct Bounded<S>(S);

impl<S> Layer<S> for WithinOpenFiles {
    type Service = Bounded<S>;

    fn layer(&self, connector: S) -> Bounded<S> {
        Bounded(connector)
    }
}

impl<R, S> Service<R> for Bounded<S>
where
    S: Service<R, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, to: R) -> Self::Future {
        let connecting = self.0.call(to);
        async move {
            let _opening = Opening::begin()?;
            connecting.await
        }
        .boxed()
    }
}

/// Connects to one of these addresses, if a file descriptor is free for the connection.
pub(super) async fn connect(addresses: &[SocketAddr]) -> io::Result<tokio::net::TcpStream> {
    let _opening = Opening::begin().map_err(io::Error::other)?;
    tokio::net::TcpStream::connect(addresses).await
}

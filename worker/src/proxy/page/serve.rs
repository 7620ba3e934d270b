//! The connections of a page's browser.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::debug;
use trawl_common::web::paced::Paced;
use trawl_common::web::url::CanonicalUrl;
use url::Url;

use super::Page;
use super::peer::is_of_this_user;
use super::purpose::purpose;
use crate::proxy::refusal::{Body, Refusal, empty};

/// Maximum number of connections of one page.
const MAX_CONNECTIONS: usize = 256;
/// Maximum time for the head of a request to arrive, and for a connection to be idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum time that a browser may delay the data sent to it.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Starts to listen, on a port for this page alone, and returns the address.
pub(super) fn start(page: &Arc<Page>) -> io::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    spawn(page, accept(Arc::clone(page), TcpListener::from_std(listener)?, address));
    Ok(address)
}

/// Runs something until the page is over.
fn spawn(page: &Arc<Page>, running: impl Future<Output = ()> + Send + 'static) {
    let ended = page.ended.clone();
    page.proxy.tasks.spawn(async move {
        ended.run_until_cancelled(running).await;
    });
}

async fn accept(page: Arc<Page>, listener: TcpListener, own: SocketAddr) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, peer)) => {
                let _ = stream.set_nodelay(true);
                let serving = Arc::clone(&page);
                spawn(&page, async move {
                    if is_of_this_user(peer, own) {
                        serve(serving, stream, None).await;
                    }
                    drop(place);
                });
            }
            Err(error) => return debug!(%error, "the proxy of a page cannot accept a connection"),
        }
    }
}

/// Answers the requests of one connection; of `host` alone, if that is the end of a tunnel.
async fn serve<S>(page: Arc<Page>, stream: S, host: Option<Authority>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| {
        let (page, host) = (Arc::clone(&page), host.clone());
        async move { Ok::<_, Infallible>(handle(&page, host, request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let stream = TokioIo::new(Paced::new(stream, STALL_TIMEOUT));
    if let Err(error) = http.serve_connection(stream, service).with_upgrades().await {
        debug!(%error, "a browser's connection to the proxy broke");
    }
}

async fn handle(page: &Arc<Page>, host: Option<Authority>, request: Request<Incoming>) -> Response<Body> {
    let uri = request.uri().clone();
    let answered = match (request.method(), &host) {
        (&Method::CONNECT, None) => open_tunnel(page, request),
        _ => ask(page, host, request).await,
    };
    answered.unwrap_or_else(|refusal| {
        debug!(%uri, why = refusal.why(), "a request of a page is refused");
        refusal.into_response()
    })
}

async fn ask(
    page: &Arc<Page>,
    host: Option<Authority>,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Refusal> {
    let uri = whole(host, request.uri())
        .ok_or_else(|| Refusal::nonsense("this is a proxy: ask it for whole URLs"))?;
    let nonsense = |why: &dyn std::fmt::Display| Refusal::nonsense(format!("{uri}: {why}"));
    let url = Url::parse(&uri.to_string()).map_err(|error| nonsense(&error))?;
    let url = CanonicalUrl::as_written(url).map_err(|error| nonsense(&error))?;
    let purpose = purpose(&request).map_err(Refusal::forbidden)?;
    *request.uri_mut() = uri;
    page.answer(purpose, url, request).await
}

/// Returns the whole URL of a request.
fn whole(host: Option<Authority>, uri: &Uri) -> Option<Uri> {
    let Some(host) = host else { return uri.scheme().is_some().then(|| uri.clone()) };
    let path = uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    Uri::builder().scheme(Scheme::HTTPS).authority(host).path_and_query(path).build().ok()
}

/// Becomes the host to which a browser wants to connect: what is asked on that connection goes the way of each request.
fn open_tunnel(page: &Arc<Page>, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
    let host =
        request.uri().authority().cloned().ok_or_else(|| Refusal::nonsense("CONNECT: write HOST:PORT"))?;
    let config = page.certificates.of_host(host.host());
    let config = config.map_err(|error| Refusal::nonsense(format!("CONNECT {host}: {error}")))?;
    let serving = Arc::clone(page);
    spawn(page, async move {
        // Fails if the browser has gone meanwhile.
        let Ok(client) = hyper::upgrade::on(request).await else { return };
        let accepting = TlsAcceptor::from(config).accept(TokioIo::new(client));
        match timeout(HEAD_TIMEOUT, accepting).await {
            Ok(Ok(stream)) => serve(serving, stream, Some(host)).await,
            Ok(Err(error)) => debug!(%host, %error, "a page's connection is no HTTPS"),
            Err(_) => debug!(%host, "a page's connection says nothing"),
        }
    });
    Ok(Response::new(empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_in_a_tunnel_is_a_url_of_its_host_whatever_it_says() {
        let host = || Some(Authority::from_static("a.example:8443"));
        let rows =
            [("/x?y", "https://a.example:8443/x?y"), ("http://b.example/x", "https://a.example:8443/x")];
        for (uri, url) in rows {
            assert_eq!(whole(host(), &uri.parse().unwrap()).unwrap(), url);
        }
        assert_eq!(whole(None, &"/x".parse().unwrap()), None);
        assert_eq!(whole(None, &"http://b.example/x".parse().unwrap()).unwrap(), "http://b.example/x");
    }
}

//! Connections for other programs, with any protocol: guarded like requests, and through the same proxy.

use std::net::{IpAddr, SocketAddr};

use data_encoding::BASE64;
use hyper::Uri;
use hyper::header::HeaderValue;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::{ServiceExt, service_fn};
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::web::url::CanonicalUrl;
use url::Url;

use super::passage::{Passage, no_url};
use super::proxy::Proxy;
use super::{blame, machine};

impl Passage {
    /// Connects to the host and port of `url` within `fetch.connect_timeout`, to the very address that was checked.
    ///
    /// # Errors
    /// Fails if the address is not allowed, or does not answer.
    pub async fn connect(&self, url: &CanonicalUrl) -> Result<TcpStream, Failure> {
        self.through(&url.host(), |exit| exit.connect_itself(url)).await
    }

    async fn connect_itself(&self, url: &CanonicalUrl) -> Result<TcpStream, Failure> {
        let (url, proxy) = (url.to_url(), self.proxy.as_ref());
        self.guard.check_behind(proxy, &url).await?;
        let connecting = async {
            match proxy {
                None => directly(self.guard.allowed(&url).await?, port(&url)).await,
                Some(proxy) if proxy.resolves_names => self.through_http(proxy, &url).await,
                Some(proxy) => self.through_socks(proxy, &url).await,
            }
        };
        let limit = self.settings.connect_timeout;
        let connected = timeout(limit, connecting).await.unwrap_or_else(|_| {
            let what = format!("no connection within {limit:?} (`fetch.connect_timeout`)");
            Err(Failure::new(Class::Timeout, what))
        });
        match connected {
            Err(failure) => Err(blame::assign(failure, proxy, &self.guard, &url).await),
            connected => connected,
        }
    }

    async fn through_http(&self, proxy: &Proxy, url: &Url) -> Result<TcpStream, Failure> {
        let mut tunnel = Tunnel::new(uri(url)?, service_fn(|_: Uri| to_proxy(proxy.clone())));
        if let Some((user, password)) = self.proxy_login() {
            let login = format!("Basic {}", BASE64.encode(format!("{user}:{password}").as_bytes()));
            tunnel = tunnel.with_auth(HeaderValue::try_from(login).map_err(no_url)?);
        }
        Ok(tunnel.oneshot(uri(url)?).await.map_err(broken)?.into_inner())
    }

    /// Connects to the first allowed address, not the name, which could mean another address to the proxy. Prefers
    /// IPv4, which every SOCKS proxy can reach.
    async fn through_socks(&self, proxy: &Proxy, url: &Url) -> Result<TcpStream, Failure> {
        let allowed = self.guard.allowed(url).await?;
        let address = allowed.iter().find(|address| address.is_ipv4()).or(allowed.first()).copied();
        let address = address.ok_or_else(|| Failure::new(Class::Dns, "no address"))?;
        let to: Uri = format!("tcp://{}", SocketAddr::new(address, port(url))).parse().map_err(no_url)?;
        let mut socks = SocksV5::new(to.clone(), service_fn(|_: Uri| to_proxy(proxy.clone())));
        if let Some((user, password)) = self.proxy_login() {
            socks = socks.with_auth(user, password);
        }
        Ok(socks.oneshot(to).await.map_err(broken)?.into_inner())
    }

    /// Returns the name and password for the proxy, if its URL has any.
    fn proxy_login(&self) -> Option<(String, String)> {
        let url = Url::parse(self.settings.proxy.as_ref()?.reveal()).ok()?;
        let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let is_given = !url.username().is_empty() || url.password().is_some();
        is_given.then(|| (plain(url.username()), plain(url.password().unwrap_or_default())))
    }
}

/// Tries one address after the other until one answers.
async fn directly(addresses: Vec<IpAddr>, port: u16) -> Result<TcpStream, Failure> {
    let addresses: Vec<_> = addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect();
    machine::connect(&addresses).await.map_err(|error| {
        let ips: Vec<_> = addresses.iter().map(SocketAddr::ip).collect();
        machine::failure(&error, &ips).unwrap_or_else(|| broken(error))
    })
}

async fn to_proxy(proxy: Proxy) -> std::io::Result<TokioIo<TcpStream>> {
    proxy.connect().await.map(TokioIo::new)
}

fn port(url: &Url) -> u16 {
    url.port_or_known_default().unwrap_or_default()
}

fn uri(url: &Url) -> Result<Uri, Failure> {
    format!("http://{}:{}/", url.host_str().unwrap_or_default(), port(url)).parse().map_err(no_url)
}

fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::new(Class::Connect, error)
}

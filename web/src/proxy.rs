//! The proxy for requests, if the settings name one.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::settings;
use url::Url;

use super::guard::Guard;

/// The words by which hyper-util says that a proxy answers a CONNECT with 407.
const TUNNEL_REFUSED: &str = "proxy authorization required";

/// A proxy and the data needed to check whether it can be reached.
#[derive(Clone, Debug)]
pub(super) struct Proxy {
    /// The URL without user name and password.
    pub(super) shown: String,
    /// The host name or address, without brackets.
    pub(super) host: String,
    /// Whether the proxy resolves host names itself. If not, it is sent addresses that were resolved here.
    pub(super) resolves_names: bool,
    port: u16,
    connect_timeout: Duration,
    /// The guard that must allow the proxy's address, or `None` if the operator chose the proxy.
    guard: Option<Guard>,
}

impl Proxy {
    /// Returns the proxy of these settings, or `None` if there is none. `guard` must allow its address if the spider
    /// that chose it came with a crawl.
    pub(super) fn new(settings: &settings::Fetch, guard: &Guard) -> Option<Self> {
        let server = settings.proxy.as_ref()?;
        let url = Url::parse(server.reveal()).ok()?;
        let mut shown = url.clone();
        // Both fail only if there is nothing to hide.
        let _ = shown.set_password(None);
        let _ = shown.set_username("");
        let is_http = url.scheme() == "http";
        Some(Self {
            shown: shown.as_str().trim_end_matches('/').to_owned(),
            host: url.host_str()?.trim_matches(['[', ']']).to_owned(),
            resolves_names: is_http,
            port: url.port_or_known_default().unwrap_or(1080),
            connect_timeout: settings.connect_timeout,
            guard: server.is_guarded().then(|| guard.clone()),
        })
    }

    /// Checks whether the proxy's address may be connected to, without asking a resolver.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let Some(guard) = &self.guard else { return Ok(()) };
        guard.check_server(&self.host, self.port).map_err(|refused| {
            Failure::new(Class::Forbidden, format_args!("the proxy {}: {refused}", self.shown))
        })
    }

    /// Whether the proxy's address is checked like those of pages.
    pub(super) fn is_guarded(&self) -> bool {
        self.guard.is_some()
    }

    /// Connects to the proxy.
    pub(super) async fn connect(&self) -> io::Result<TcpStream> {
        match &self.guard {
            Some(guard) => {
                let allowed = guard.addresses(&self.host, self.port).await.map_err(io::Error::other)?;
                TcpStream::connect(&*allowed).await
            }
            None => TcpStream::connect((&*self.host, self.port)).await,
        }
    }

    /// Returns the failure of a request whose user or password the proxy refuses.
    pub(super) fn refusal(&self) -> Failure {
        let what = format_args!("the proxy {} refuses this user or password (407)", self.shown);
        Failure::new(Class::Proxy, what)
    }

    /// Whether a response to a request for `url` with the status 407 is the proxy's own, rather than one of the host,
    /// which a tunnel passes on.
    pub(super) fn answers_itself(&self, url: &Url) -> bool {
        url.scheme() == "http" && self.resolves_names
    }

    /// Returns the failure of a request that got no response: that of the proxy if it cannot be reached or has refused a
    /// tunnel for its user or password, else `failure`.
    pub(super) async fn or_is_away(&self, failure: Failure) -> Failure {
        if failure.class == Class::Connect && failure.detail.contains(TUNNEL_REFUSED) {
            return self.refusal();
        }
        if !matches!(failure.class, Class::Connect | Class::Dns | Class::Timeout) {
            return failure;
        }
        let why = match timeout(self.connect_timeout, self.connect()).await {
            Ok(Ok(_)) => return failure,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no connection within {:?} (`fetch.connect_timeout`)", self.connect_timeout),
        };
        Failure::new(Class::Proxy, format_args!("no connection to the proxy {}: {why}", self.shown))
    }
}

impl Guard {
    /// Makes all checks that are due before a request for `url`, sent through `proxy` if there is one.
    pub(super) async fn check_behind(&self, proxy: Option<&Proxy>, url: &Url) -> Result<(), Failure> {
        self.check(url)?;
        proxy.map_or(Ok(()), Proxy::check)?;
        match proxy {
            Some(proxy) if proxy.resolves_names => Ok(self.check_public_name(url, &proxy.host)?),
            Some(_) => self.check_name(url).await,
            None => Ok(()),
        }
    }
}

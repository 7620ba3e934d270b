//! The proxy that requests go through, if settings name one.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::settings;
use url::Url;

use super::guard::Guard;

/// A proxy, and what is needed to check whether it can be reached.
#[derive(Clone, Debug)]
pub(super) struct Proxy {
    /// Its address without a password.
    pub(super) shown: String,
    /// Its host, as a resolver knows it.
    pub(super) host: String,
    /// Whether the proxy resolves host names itself. Otherwise it is sent addresses that were resolved here.
    pub(super) resolves_names: bool,
    port: u16,
    connect_timeout: Duration,
    /// What has to allow its own address; `None` where whoever has the machine chose it.
    guard: Option<Guard>,
}

impl Proxy {
    /// The proxy of these settings. `guard` has to allow its own address, if a spider chose it that came with a crawl.
    pub(super) fn of(settings: &settings::Fetch, guard: &Guard) -> Option<Self> {
        let server = settings.proxy.as_ref()?;
        let url = Url::parse(server.reveal()).ok()?;
        let mut shown = url.clone();
        // Both fail only where there is nothing to hide.
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

    /// Whether its own address may be asked, as far as that shows without asking a resolver.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let Some(guard) = &self.guard else { return Ok(()) };
        guard.check_server(&self.host, self.port).map_err(|refused| {
            Failure::new(Class::Forbidden, format_args!("the proxy {}: {refused}", self.shown))
        })
    }

    /// Whether its own address is checked as those of pages are.
    pub(super) fn is_guarded(&self) -> bool {
        self.guard.is_some()
    }

    /// A connection to it.
    pub(super) async fn connect(&self) -> io::Result<TcpStream> {
        match &self.guard {
            Some(guard) => {
                let allowed = guard.addresses(&self.host, self.port).await.map_err(io::Error::other)?;
                TcpStream::connect(&*allowed).await
            }
            None => TcpStream::connect((&*self.host, self.port)).await,
        }
    }

    /// Why a request got no answer: the proxy is away, or else what `failure` says.
    pub(super) async fn or_is_away(&self, failure: Failure) -> Failure {
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

//! The proxy that requests go through, if settings name one.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::settings;
use url::Url;

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
}

impl Proxy {
    /// The proxy of these settings.
    pub(super) fn of(settings: &settings::Fetch) -> Option<Self> {
        let url = Url::parse(settings.proxy.as_ref()?.reveal()).ok()?;
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
        })
    }

    /// A connection to it.
    pub(super) async fn connect(&self) -> io::Result<TcpStream> {
        TcpStream::connect((&*self.host, self.port)).await
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

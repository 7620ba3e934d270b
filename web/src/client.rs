//! The HTTP client for all requests, and how it identifies itself.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, HeaderMap, HeaderValue};
use rustls::ClientConfig;
use trawl_common::settings;

use super::coding;
use super::guard::{BehindProxy, Guard};
use super::machine::WithinOpenFiles;
use super::proxy::Proxy;

/// How long an idle connection is kept. If files are scarce, none is kept ([`trawl_common::open_files`]).
pub(super) const IDLE_TIME: Duration = Duration::from_secs(5);

/// Maximum number of headers of a response. Legitimate sites stay below; together they may have some 400 KB, a limit of
/// hyper.
const MAX_HEADERS: usize = 256;

/// Maximum size in bytes of all headers of an HTTP/2 response, unpacked.
const MAX_HTTP2_HEADERS: u32 = 64 * 1024;

/// Creates a client that connects only to addresses that `guard` allows, and identifies itself as `settings` say.
pub(super) fn client(
    settings: &settings::Fetch,
    guard: &Guard,
    proxy: Option<&Proxy>,
    tls: ClientConfig,
) -> reqwest::Result<reqwest::Client> {
    let client = nameless(settings, guard, proxy, tls)?;
    client.user_agent(settings.user_agent_line()).default_headers(preferences()).build()
}

/// Creates a client like `client`, but without a user agent or other headers of its own.
pub(super) fn nameless(
    settings: &settings::Fetch,
    guard: &Guard,
    proxy: Option<&Proxy>,
    tls: ClientConfig,
) -> reqwest::Result<reqwest::ClientBuilder> {
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(settings.connect_timeout)
        .pool_idle_timeout(IDLE_TIME)
        .http1_max_headers(MAX_HEADERS)
        // Heads that browsers accept (RFC 9112 5.1, 5.2).
        .http1_allow_obsolete_multiline_headers_in_responses(true)
        .http1_allow_spaces_after_header_name_in_responses(true)
        .http1_ignore_invalid_headers_in_responses(true)
        .http2_max_header_list_size(MAX_HTTP2_HEADERS)
        // A server that stops reading could hold its connection open. No request waits longer than this for a response.
        .http2_keep_alive_interval(IDLE_TIME)
        .http2_keep_alive_timeout(settings.timeout)
        .http2_keep_alive_while_idle(true)
        .tcp_nodelay(true)
        .no_proxy()
        .connector_layer(WithinOpenFiles)
        // Otherwise a server that refuses an HTTP/2 stream would get the next requests at once.
        .retry(reqwest::retry::never())
        .redirect(reqwest::redirect::Policy::none());
    Ok(match (&settings.proxy, proxy) {
        (Some(url), Some(proxy)) if proxy.is_guarded() => {
            client.proxy(reqwest::Proxy::all(url.reveal())?).dns_resolver(Arc::new(guard.clone()))
        }
        (Some(url), Some(proxy)) => client
            .proxy(reqwest::Proxy::all(url.reveal())?)
            .dns_resolver(Arc::new(BehindProxy { guard: guard.clone(), proxy: proxy.host.clone() })),
        _ => client.dns_resolver(Arc::new(guard.clone())),
    })
}

/// Headers that prefer pages to data, English if there is a choice, anything to nothing, and compressed bodies.
pub(super) fn preferences() -> HeaderMap {
    HeaderMap::from_iter([
        (ACCEPT, HeaderValue::from_static("text/html,application/xhtml+xml,*/*;q=0.8")),
        (ACCEPT_LANGUAGE, HeaderValue::from_static("en,*;q=0.5")),
        (ACCEPT_ENCODING, HeaderValue::from_static(coding::ACCEPTED)),
    ])
}

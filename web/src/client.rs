//! The client that every request goes through, and what it says of itself.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, HeaderMap, HeaderValue};
use rustls::ClientConfig;
use trawl_common::settings;

use super::coding;
use super::guard::{BehindProxy, Guard};
use super::machine::WithinOpenFiles;
use super::proxy::Proxy;

/// How long an idle connection is kept. Where files are scarce none is ([`trawl_common::open_files`]).
pub(super) const IDLE_TIME: Duration = Duration::from_secs(5);

/// How many headers an answer may have. Honest sites stay below; together they may have some 400 KB, by hyper.
const MAX_HEADERS: usize = 256;

/// How large all headers of an answer may be by HTTP/2, unpacked.
const MAX_HTTP2_HEADERS: u32 = 64 * 1024;

/// A client that connects only where `guard` lets it, and says of itself what `settings` say.
pub(super) fn client(
    settings: &settings::Fetch,
    guard: &Guard,
    proxy: Option<&Proxy>,
    tls: ClientConfig,
) -> reqwest::Result<reqwest::Client> {
    let client = nameless(settings, guard, proxy, tls)?;
    client.user_agent(settings.user_agent_line()).default_headers(preferences()).build()
}

/// The same, but it says nothing of itself.
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
        // Heads that browsers read (RFC 9112 5.1, 5.2).
        .http1_allow_obsolete_multiline_headers_in_responses(true)
        .http1_allow_spaces_after_header_name_in_responses(true)
        .http1_ignore_invalid_headers_in_responses(true)
        .http2_max_header_list_size(MAX_HTTP2_HEADERS)
        // A server that reads nothing more could hold its connection open. No request waits longer than this for an answer.
        .http2_keep_alive_interval(IDLE_TIME)
        .http2_keep_alive_timeout(settings.timeout)
        .http2_keep_alive_while_idle(true)
        .tcp_nodelay(true)
        .no_proxy()
        .connector_layer(WithinOpenFiles)
        // A server that refuses a stream of HTTP/2 would get the next requests at once.
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

/// Pages rather than data, in English where there is a choice, anything rather than nothing, and packed.
pub(super) fn preferences() -> HeaderMap {
    HeaderMap::from_iter([
        (ACCEPT, HeaderValue::from_static("text/html,application/xhtml+xml,*/*;q=0.8")),
        (ACCEPT_LANGUAGE, HeaderValue::from_static("en,*;q=0.5")),
        (ACCEPT_ENCODING, HeaderValue::from_static(coding::ACCEPTED)),
    ])
}

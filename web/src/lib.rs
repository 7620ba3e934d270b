//! trawl's HTTP client, the same for pages, sitemaps and `robots.txt`: one request within limits of time, size,
//! address and port, whatever the other side sends. `tests/attacks.md` lists what was tried on it.

mod address;
mod body;
mod coding;
mod failure;
mod guard;
mod kind;
mod memory;
mod own;
mod proxy;
mod redirect;
mod robots;
mod rules;
#[cfg(test)]
mod tests;
mod threads;
mod trust;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, stream};
use reqwest::StatusCode;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, USER_AGENT,
};
use rustls::ClientConfig;
use tokio::time::timeout;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::ports::Response;
use trawl_common::settings;
use trawl_common::spider::Spider;
use trawl_common::spider::page_history::Validators;
use trawl_common::time::UnixMs;
use trawl_common::web::headers::Headers;
use trawl_common::web::url::{CanonicalUrl, Host};
use url::Url;

use self::body::Body;
use self::guard::{BehindProxy, Guard, Lookup};
pub use self::memory::{MemoryBudget, MemoryShare};
use self::own::Own;
use self::proxy::Proxy;
pub use self::redirect::Trail;
use self::robots::Hop;
pub use self::robots::{NoRobots, Robots, RobotsWay};
pub use self::rules::{NoPage, ban};
pub use self::threads::Threads;

/// How many redirects in a row lead to a page; more lead nowhere.
pub const MAX_REDIRECTS: u8 = 10;

/// How long an idle connection is kept. There is no limit over all hosts, so time must be one.
const IDLE_TIME: Duration = Duration::from_secs(5);

/// What all bodies of a fetcher may take that shares with no other.
const MEMORY: u64 = 256 << 20;

/// How many headers an answer may have. Honest sites stay below; together they may have some 400 KB, by hyper.
const MAX_HEADERS: usize = 256;

/// How large all headers of an answer may be by HTTP/2, unpacked.
const MAX_HTTP2_HEADERS: u32 = 64 * 1024;

/// Settings that no client can be made of.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The client refused them, as a user agent with a line break.
    #[error(transparent)]
    Client(#[from] reqwest::Error),
    /// The system has nobody to trust over TLS.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// A header field of a spider that cannot be sent.
    #[error("the header field `{0}` cannot be sent as it is written")]
    Field(String),
}

/// What came of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A success, with its body.
    Page(Response),
    /// It is as it was when these validators came.
    NotModified,
    /// Elsewhere: a URL that may be asked, as far as it shows without asking a resolver.
    Redirect(CanonicalUrl),
    /// A success of a kind that nobody here reads, so its body was not downloaded.
    Unread {
        /// The HTTP status.
        status: u16,
        /// The kind: the `Content-Type` as sent.
        content_type: String,
    },
}

/// What came of one request for a source.
#[derive(Debug)]
pub enum Opened<S> {
    /// A success: the answer without its body, and the body.
    Body(Response, S),
    /// Elsewhere: a URL that may be asked, as far as it shows without asking a resolver.
    Redirect(CanonicalUrl),
}

/// The start of an answer, whatever its status.
#[derive(Debug)]
struct Start {
    status: u16,
    /// The first bytes of the decoded body of a success; of nothing else is it read.
    body: Bytes,
    /// The wait that the server asked for (`Retry-After`, RFC 9110 10.2.3).
    retry_after: Option<Duration>,
}

/// Fetches pages, and keeps the connections that the next ones can use.
#[derive(Clone, Debug)]
pub struct Fetcher {
    client: reqwest::Client,
    /// Where its requests run; `None` where its caller does.
    threads: Option<Threads>,
    tls: ClientConfig,
    sent: Headers,
    guard: Guard,
    own: Option<Own>,
    proxy: Option<Proxy>,
    settings: Arc<settings::Fetch>,
    memory: MemoryBudget,
}

impl Fetcher {
    /// A fetcher with these settings. The process must have a default rustls crypto provider.
    pub fn new(settings: &settings::Fetch) -> Result<Self, Unusable> {
        Self::with(settings, guard::system_lookup, trust::tls()?)
    }

    /// A fetcher that asks as `spider` says, and with these settings where that says nothing.
    pub fn of(spider: &Spider, settings: &settings::Fetch) -> Result<Self, Unusable> {
        Ok(Self { own: Some(Own::of(spider)?), ..Self::new(&settings.of(&spider.request))? })
    }

    fn with(settings: &settings::Fetch, lookup: Lookup, tls: ClientConfig) -> Result<Self, Unusable> {
        let settings = Arc::new(settings.clone());
        let guard = Guard::new(Arc::clone(&settings), lookup);
        let proxy = Proxy::of(&settings);
        let mut sent = preferences();
        sent.extend(HeaderValue::try_from(settings.user_agent_line()).map(|agent| (USER_AGENT, agent)));
        Ok(Self {
            client: client(&settings, &guard, proxy.as_ref(), tls.clone())?,
            threads: None,
            tls,
            sent: kind::headers(&sent),
            guard,
            own: None,
            proxy,
            settings,
            memory: MemoryBudget::new(MEMORY),
        })
    }

    /// Has the bodies of its pages share `memory` with others. One that is no more than 256 KiB takes nothing of it; a larger
    /// one waits until there is room, within `fetch.timeout`.
    pub fn within(self, memory: MemoryBudget) -> Self {
        Self { memory, ..self }
    }

    /// The same, but all its requests run on `threads`, with connections of its own.
    pub fn on(&self, threads: &Threads) -> Result<Self, Unusable> {
        let client = client(&self.settings, &self.guard, self.proxy.as_ref(), self.tls.clone())?;
        Ok(Self { client, threads: Some(threads.clone()), ..self.clone() })
    }

    /// The proxy that it asks through, without a password.
    pub fn proxy(&self) -> Option<&str> {
        self.proxy.as_ref().map(|proxy| &*proxy.shown)
    }

    /// The addresses of a host, as far as it is known where its requests go: none behind a proxy that resolves names. The
    /// next request goes to one of these; that there are none is for it to say.
    pub async fn addresses(&self, host: &Host) -> Vec<IpAddr> {
        if let Some(known) = self.known_addresses(host) {
            return known;
        }
        let found = timeout(self.settings.timeout, self.guard.find(host.as_str())).await;
        found.into_iter().flatten().flat_map(|found| ips(&found)).collect()
    }

    /// The same, if nobody has to be asked for them.
    pub fn known_addresses(&self, host: &Host) -> Option<Vec<IpAddr>> {
        if self.proxy.as_ref().is_some_and(|proxy| proxy.resolves_names) {
            return Some(Vec::new());
        }
        match host.address() {
            Some(address) => Some(vec![address]),
            None => self.guard.found(host.as_str()).map(|found| ips(&found)),
        }
    }

    /// The header fields that a request for `url` with `validators` carries, as far as they may be shown.
    pub fn request_headers(&self, url: &CanonicalUrl, validators: &Validators) -> Headers {
        let url = url.to_url();
        let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
        let conditions = conditions(validators);
        let conditions = conditions.iter().map(|(name, text)| (name.as_str(), *text));
        [("host", host)].into_iter().chain(self.sent.iter()).chain(conditions).collect()
    }

    /// Asks for `url`: one request, answered whole within `fetch.timeout`. With validators, which must have come from
    /// that very URL, only if it has changed (RFC 9110 13.1). A status that is neither a success, nor a redirect, nor the
    /// answer to validators is a [`Failure`], as is whatever settings do not allow. Who follows redirects counts them:
    /// [`MAX_REDIRECTS`].
    pub async fn ask(&self, url: &CanonicalUrl, validators: &Validators) -> Result<Answer, Failure> {
        within(self.settings.timeout, async {
            let response = self.request(url, condition(validators)).await?;
            if response.status() == StatusCode::NOT_MODIFIED && !validators.is_empty() {
                return Ok(Answer::NotModified);
            }
            match redirect::target(&self.guard, url, &response)? {
                Some(target) => Ok(Answer::Redirect(target)),
                None => self.answer(response).await,
            }
        })
        .await
    }

    /// Asks for `url`: one request, of whose answer the body is handed on as it comes, of any kind and however large: for
    /// sitemaps, whose reader has limits of its own. The time limit holds for the answer, and anew for each part of the body.
    /// Who follows redirects counts them by a [`Trail`].
    pub async fn open(
        &self,
        url: &CanonicalUrl,
    ) -> Result<Opened<impl Stream<Item = Result<Bytes, Failure>> + Send + use<>>, Failure> {
        let timeout = self.settings.timeout;
        within(timeout, async {
            let response = self.request(url, HeaderMap::new()).await?;
            if let Some(target) = redirect::target(&self.guard, url, &response)? {
                return Ok(Opened::Redirect(target));
            }
            if !response.status().is_success() {
                return Err(failure::status(&response));
            }
            let head = self.head(&response);
            let parts = stream::try_unfold(Body::open(response, None).await?, move |mut body| async move {
                let part = within(timeout, body.next()).await?;
                Ok(part.map(|part| (part, body)))
            });
            Ok(Opened::Body(head, parts))
        })
        .await
    }

    /// Asks for `url`: one request, of whose answer the first `most` bytes are read, all within `fetch.timeout`: for
    /// `robots.txt` (RFC 9309 2.3.1), where every status means something. A redirect to what settings do not allow is a
    /// [`Failure`] of class `forbidden`.
    async fn start(&self, url: &CanonicalUrl, most: usize) -> Result<Hop, Failure> {
        within(self.settings.timeout, async {
            let response = self.request(url, HeaderMap::new()).await?;
            if let Some(target) = redirect::target(&self.guard, url, &response)? {
                return Ok(Hop::Redirect(target));
            }
            let status = response.status();
            let retry_after = failure::retry_after(&response);
            let body = if status.is_success() {
                Body::open(response, None).await?.read_start(most).await?
            } else {
                Bytes::new()
            };
            Ok(Hop::Start(Start { status: status.as_u16(), body, retry_after }))
        })
        .await
    }

    async fn request(&self, url: &CanonicalUrl, more: HeaderMap) -> Result<reqwest::Response, Failure> {
        let mut fields = self.own.as_ref().map(|own| own.fields(url)).unwrap_or_default();
        fields.extend(more);
        let url = url.to_url();
        self.guard.check(&url)?;
        let Some(proxy) = &self.proxy else {
            return self.send(url, fields).await;
        };
        if proxy.resolves_names {
            self.guard.check_public_name(&url, &proxy.host)?;
        } else {
            self.guard.check_name(&url).await?;
        }
        match self.send(url, fields).await {
            Ok(response) => Ok(response),
            Err(failure) => Err(proxy.or_is_away(failure).await),
        }
    }

    /// Where it runs, its connection is read to the end of the answer.
    async fn send(&self, url: Url, fields: HeaderMap) -> Result<reqwest::Response, Failure> {
        let answer = self.client.get(url).headers(fields).send();
        let answer = match &self.threads {
            Some(threads) => threads.run(answer).await,
            None => answer.await,
        };
        answer.map_err(|error| failure::no_answer(&error))
    }

    async fn answer(&self, response: reqwest::Response) -> Result<Answer, Failure> {
        if !response.status().is_success() {
            return Err(failure::status(&response));
        }
        let status = response.status().as_u16();
        match kind::content_type(response.headers()) {
            Some(content_type) if !kind::is_read(&content_type) => {
                Ok(Answer::Unread { status, content_type })
            }
            _ => {
                let head = self.head(&response);
                let body = Body::open(response, Some(self.settings.max_body.as_u64()))
                    .await?
                    .read(&self.memory)
                    .await?;
                Ok(Answer::Page(Response { fetched_at: UnixMs::now(), body, ..head }))
            }
        }
    }

    /// An answer without its body.
    fn head(&self, response: &reqwest::Response) -> Response {
        Response {
            status: response.status().as_u16(),
            headers: kind::headers(response.headers()),
            redirected_to: None,
            fetched_at: UnixMs::now(),
            address: response.remote_addr().filter(|_| self.proxy.is_none()).map(|address| address.ip()),
            body: Bytes::new(),
        }
    }
}

fn ips(addresses: &[SocketAddr]) -> Vec<IpAddr> {
    addresses.iter().map(SocketAddr::ip).collect()
}

/// A client that connects only where `guard` lets it.
fn client(
    settings: &settings::Fetch,
    guard: &Guard,
    proxy: Option<&Proxy>,
    tls: ClientConfig,
) -> reqwest::Result<reqwest::Client> {
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(settings.user_agent_line())
        .default_headers(preferences())
        .connect_timeout(settings.connect_timeout)
        .pool_idle_timeout(IDLE_TIME)
        .http1_max_headers(MAX_HEADERS)
        .http2_max_header_list_size(MAX_HTTP2_HEADERS)
        // A server that reads nothing more could hold its connection open. No request waits longer than this for an answer.
        .http2_keep_alive_interval(IDLE_TIME)
        .http2_keep_alive_timeout(settings.timeout)
        .http2_keep_alive_while_idle(true)
        .tcp_nodelay(true)
        .no_proxy()
        // A server that refuses a stream of HTTP/2 would get the next requests at once.
        .retry(reqwest::retry::never())
        .redirect(reqwest::redirect::Policy::none());
    let client = match (&settings.proxy, proxy) {
        (Some(url), Some(proxy)) => client
            .proxy(reqwest::Proxy::all(url.reveal())?)
            .dns_resolver(Arc::new(BehindProxy { guard: guard.clone(), proxy: proxy.host.clone() })),
        _ => client.dns_resolver(Arc::new(guard.clone())),
    };
    client.build()
}

/// The result of `call`, or a failure when it takes longer than `limit`.
async fn within<T, E: From<Failure>>(
    limit: Duration,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    timeout(limit, call).await.unwrap_or_else(|_| {
        let detail = format_args!("no complete answer within {limit:?} (`fetch.timeout`)").to_string();
        Err(Failure::new(Class::Timeout, detail).into())
    })
}

/// The fields that ask for what has changed (RFC 9110 13.1.2 and 13.1.3). Servers that know entity tags ignore the date.
fn conditions(validators: &Validators) -> Vec<(HeaderName, &str)> {
    let fields = [(IF_NONE_MATCH, validators.etag()), (IF_MODIFIED_SINCE, validators.last_modified())];
    fields.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
}

fn condition(validators: &Validators) -> HeaderMap {
    let fields = conditions(validators).into_iter();
    fields.filter_map(|(name, text)| Some((name, HeaderValue::from_str(text).ok()?))).collect()
}

/// Pages rather than data, in English where there is a choice, anything rather than nothing, and packed.
fn preferences() -> HeaderMap {
    HeaderMap::from_iter([
        (ACCEPT, HeaderValue::from_static("text/html,application/xhtml+xml,*/*;q=0.8")),
        (ACCEPT_LANGUAGE, HeaderValue::from_static("en,*;q=0.5")),
        (ACCEPT_ENCODING, HeaderValue::from_static(coding::ACCEPTED)),
    ])
}

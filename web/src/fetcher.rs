//! Sends one request at a time, within all limits.

use std::borrow::Cow;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, stream};
use reqwest::StatusCode;
use reqwest::header::{CONNECTION, COOKIE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use rustls::ClientConfig;
use tokio::time::timeout;
use trawl_common::frontier::Request;
use trawl_common::frontier::message::Hop;
use trawl_common::frontier::outcome::{Class, Failure, is_refusal};
use trawl_common::open_files;
use trawl_common::ports::Left;
use trawl_common::request::Method;
use trawl_common::settings::{self, ServerUrl};
use trawl_common::spider::Spider;
use trawl_common::spider::page_history::Validators;
use trawl_common::time::UnixMs;
use trawl_common::web::headers::Headers;
use trawl_common::web::response::Response;
use trawl_common::web::url::{CanonicalUrl, Host};
use url::Url;

use super::answer::{self, Answer, BodyStart, Opened};
use super::body::{Body, Limit};
use super::client::{client, nameless, preferences};
use super::exits::Exits;
use super::file::{self, OpenedFile, Opening};
use super::guard::{Guard, Lookup};
use super::memory::MemoryBudget;
use super::odd::OddOrigins;
use super::own::Own;
use super::passage::Passage;
use super::proxy::Proxy;
use super::redirect::Redirect;
use super::sent::{Sent, joined};
use super::session::{self, Session};
use super::threads::Threads;
use super::time_limit::within;
use super::unusable::Unusable;
use super::{blame, coding, conditions, failure, kind, lenient, redirect, resolver, sent, trust};

/// The memory budget in bytes for all bodies of a fetcher that shares none.
const DEFAULT_MEMORY: u64 = 256 << 20;

/// The number of proxies that are taken for one request if they cannot be reached.
const MAX_EXITS: usize = 3;

/// Fields by which Chromium names itself beside its user agent.
const CLIENT_HINTS: [HeaderName; 3] = [
    HeaderName::from_static("sec-ch-ua"),
    HeaderName::from_static("sec-ch-ua-mobile"),
    HeaderName::from_static("sec-ch-ua-platform"),
];

/// Fetches pages, and keeps the connections that the next ones can use.
#[derive(Clone, Debug)]
pub struct Fetcher {
    client: reqwest::Client,
    /// The threads for its requests; `None` for those of the caller.
    threads: Option<Threads>,
    tls: ClientConfig,
    /// The header fields of every request.
    common: HeaderMap,
    sent: Headers,
    guard: Guard,
    own: Option<Own>,
    session: Option<Arc<dyn Session>>,
    proxy: Option<Proxy>,
    /// Fetchers through several proxies, one of which makes each request in place of this one.
    exits: Option<Exits<Fetcher>>,
    pub(super) settings: Arc<settings::Fetch>,
    memory: MemoryBudget,
    odd: OddOrigins,
}

impl Fetcher {
    /// Creates a fetcher with these settings. The process must have a default rustls crypto provider.
    pub fn new(settings: &settings::Fetch) -> Result<Self, Unusable> {
        Self::with(settings, resolver::lookup, trust::tls()?)
    }

    /// Creates a fetcher with the requests of `spider`, and with these settings for the rest.
    pub fn from_spider(spider: &Spider, settings: &settings::Fetch) -> Result<Self, Unusable> {
        let settings = spider.request.apply(settings);
        let fetcher = Self { own: Some(Own::new(spider)?), ..Self::new(&settings)? };
        let Some(proxies) = &spider.proxies else { return Ok(fetcher) };
        let through = |url: &ServerUrl| {
            let settings = settings::Fetch { proxy: Some(url.clone()), ..settings.clone() };
            let through = Self { own: fetcher.own.clone(), ..Self::new(&settings)? };
            Ok((through.proxy().unwrap_or_default().into_owned(), through))
        };
        let all = proxies.urls.iter().map(through).collect::<Result<_, Unusable>>()?;
        Ok(Self { exits: Some(Exits::new(spider.name.as_str(), proxies.per, all)), ..fetcher })
    }

    pub(super) fn with(
        settings: &settings::Fetch,
        lookup: Lookup,
        tls: ClientConfig,
    ) -> Result<Self, Unusable> {
        let settings = Arc::new(settings.clone());
        let guard = Guard::new(Arc::clone(&settings), lookup);
        let proxy = Proxy::new(&settings, &guard);
        let mut sent = preferences();
        sent.extend(HeaderValue::try_from(settings.user_agent_line()).map(|agent| (USER_AGENT, agent)));
        Ok(Self {
            client: client(&settings, &guard, proxy.as_ref(), tls.clone())?,
            threads: None,
            tls,
            sent: kind::headers(&sent),
            common: sent,
            guard,
            own: None,
            session: None,
            proxy,
            exits: None,
            settings,
            memory: MemoryBudget::new(DEFAULT_MEMORY),
            odd: OddOrigins::new(),
        })
    }

    /// Makes the bodies of its pages share `memory` with others. A body of at most 256 KiB takes nothing of it; a
    /// larger one waits until the budget allows it, within `fetch.timeout`.
    pub fn within(self, memory: MemoryBudget) -> Self {
        Self { memory, ..self }
    }

    /// Returns a fetcher with the same settings and connections whose requests are part of `session`.
    pub fn in_session(&self, session: Arc<dyn Session>) -> Self {
        Self { session: Some(session), ..self.clone() }
    }

    /// Returns a fetcher with the same settings whose requests run on `threads`, with its own connections.
    pub fn on(&self, threads: &Threads) -> Result<Self, Unusable> {
        let client = client(&self.settings, &self.guard, self.proxy.as_ref(), self.tls.clone())?;
        let exits = self.exits.as_ref().map(|exits| exits.each(|exit| exit.on(threads))).transpose()?;
        Ok(Self { client, threads: Some(threads.clone()), exits, ..self.clone() })
    }

    /// Returns a passage that forwards the requests of others, with its own connections: with the same guard, proxy and
    /// threads as this fetcher's requests. A request without a `User-Agent` gets this fetcher's.
    pub fn passage(&self) -> Result<Passage, Unusable> {
        let client = nameless(&self.settings, &self.guard, self.proxy.as_ref(), self.tls.clone())?;
        let client = client.user_agent(self.settings.user_agent_line()).build()?;
        Ok(Passage {
            exits: self.exits.as_ref().map(|exits| exits.each(Self::passage)).transpose()?,
            client,
            threads: self.threads.clone(),
            guard: self.guard.clone(),
            proxy: self.proxy.clone(),
            settings: Arc::clone(&self.settings),
        })
    }

    /// Returns the proxy for its requests, or all of several, without passwords.
    pub fn proxy(&self) -> Option<Cow<'_, str>> {
        match &self.exits {
            Some(exits) => Some(exits.names().join(", ").into()),
            None => self.proxy.as_ref().map(|proxy| (&*proxy.shown).into()),
        }
    }

    /// Returns the user agent of its requests.
    pub fn user_agent(&self) -> &str {
        self.sent.get(USER_AGENT.as_str()).unwrap_or_default()
    }

    /// Whether settings allow to ask for `url`, as far as it shows without asking a resolver.
    pub fn may_ask(&self, url: &CanonicalUrl) -> bool {
        self.guard.check(&url.to_url()).is_ok()
    }

    /// The addresses of a host, as far as it is known where its requests go: none behind a proxy that resolves names.
    /// The next request goes to one of these; that there are none is for it to say.
    pub async fn addresses(&self, host: &Host) -> Vec<IpAddr> {
        if let Some(known) = self.known_addresses(host) {
            return known;
        }
        let found = timeout(self.settings.timeout, self.guard.find(host.as_str())).await;
        found.into_iter().flatten().flat_map(|found| ips(&found)).collect()
    }

    /// Like [`addresses`](Self::addresses), but only if they are known without a resolver.
    pub fn known_addresses(&self, host: &Host) -> Option<Vec<IpAddr>> {
        let resolves = |fetcher: &Self| fetcher.proxy.as_ref().is_some_and(|proxy| proxy.resolves_names);
        if resolves(self) || self.exits.as_ref().is_some_and(|exits| exits.any(resolves)) {
            return Some(Vec::new());
        }
        match host.address() {
            Some(address) => Some(vec![address]),
            None => self.guard.found(host.as_str()).map(|found| ips(&found)),
        }
    }

    /// Returns the header fields of a request for `url` with `validators`, as far as they may be shown.
    pub fn request_headers(&self, url: &CanonicalUrl, validators: &Validators) -> Headers {
        let url = url.to_url();
        let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
        let conditions = conditions::fields(validators);
        let conditions = conditions.iter().map(|(name, text)| (name.as_str(), *text));
        [("host", host)].into_iter().chain(self.sent.iter()).chain(conditions).collect()
    }

    /// Makes a browser's request for `url` one of this fetcher: it gets its user agent, the spider's own fields, and
    /// those of its session, beside the cookies that the browser has.
    pub fn put_own_fields(&self, url: &CanonicalUrl, fields: &mut HeaderMap) {
        for hint in CLIENT_HINTS {
            fields.remove(hint);
        }
        let mut own = self.own_fields(url);
        if let (Some(first), Some(rest)) = (fields.get(COOKIE), own.get(COOKIE))
            && let Some(cookies) = joined(first, rest)
        {
            own.insert(COOKIE, cookies);
        }
        own.extend(self.common.get(USER_AGENT).map(|agent| (USER_AGENT, agent.clone())));
        fields.extend(own);
    }

    /// Has the session, if there is one, take in the cookies that a response from `url` with these fields sets.
    pub fn take_cookies(&self, url: &CanonicalUrl, fields: &HeaderMap) {
        if let Some(session) = &self.session {
            session::take_cookies(&**session, url, fields);
        }
    }

    /// Sends one request for `url`, and reads the whole response within `fetch.timeout`. With validators, which must be
    /// from that very URL, the page is returned only if it has changed (RFC 9110 13.1). A status that is neither a
    /// success, nor a redirect, nor the response to validators is a [`Failure`], as is anything that the settings
    /// forbid. Callers that follow redirects count them: [`MAX_REDIRECTS`](crate::MAX_REDIRECTS).
    pub async fn ask(&self, url: &CanonicalUrl, validators: &Validators) -> Result<Answer, Failure> {
        self.within_limit(url, Method::Get, move |exit| async move {
            let response = self.request(exit, url, Sent::get(conditions::headers(validators))).await?;
            if response.status() == StatusCode::NOT_MODIFIED && !validators.is_empty() {
                return Ok(Answer::NotModified);
            }
            match redirect::target(&self.guard, url, &response)? {
                Some(target) => Ok(Answer::Redirect(target.into())),
                None => self.answer(response).await,
            }
        })
        .await
    }

    /// Like [`ask`](Self::ask), for a request whose redirects have come to `hop`. For a request that accepts any
    /// status, every response is a page.
    pub async fn ask_for(&self, request: &Request, hop: Option<&Hop>) -> Result<Answer, Failure> {
        let (url, method) = (sent::target(request, hop), request.new.method);
        self.within_limit(url, method, move |exit| async move {
            let response = self.request(exit, url, Sent::new(request, hop)).await?;
            if request.new.any_status {
                return self.whatever(method, response).await.map(Answer::Page);
            }
            match self.redirect(url, method, hop, &response)? {
                Some(redirect) => Ok(Answer::Redirect(redirect)),
                // Whatever its header fields say about a body, there is none (RFC 9110 9.3.2).
                None if method == Method::Head && response.status().is_success() => {
                    Ok(Answer::Page(self.head(&response)))
                }
                None => self.answer(response).await,
            }
        })
        .await
    }

    /// Sends a request for a file of at most `max_size` bytes whose redirects have come to `hop`, or for the rest of
    /// what is `left` of it. The head of the response must come within `fetch.timeout`.
    ///
    /// # Errors
    /// Fails as [`ask`](Self::ask) does, and if the file is announced to be too large.
    pub async fn open_file(
        &self,
        request: &Request,
        hop: Option<&Hop>,
        left: Option<&Left>,
        max_size: u64,
    ) -> Result<OpenedFile, Failure> {
        let (url, method) = (sent::target(request, hop), request.new.method);
        let left = left.filter(|left| method == Method::Get && left.resume.url == url.as_str());
        self.within_limit(url, method, move |exit| async move {
            let mut sent = Sent::new(request, hop);
            sent.fields.extend(file::fields(url, left));
            let response = self.request(exit, url, sent).await?;
            if let Some(redirect) = self.redirect(url, method, hop, &response)? {
                return Ok(OpenedFile::Redirect(redirect));
            }
            let has_changed = [StatusCode::PRECONDITION_FAILED, StatusCode::RANGE_NOT_SATISFIABLE];
            if left.is_some() && has_changed.contains(&response.status()) {
                return Ok(OpenedFile::Changed(self.head(&response)));
            }
            if !response.status().is_success() {
                return Err(failure::status(&response));
            }
            let (head, headers) = (self.head(&response), response.headers().clone());
            let is_coded = !coding::codings(&headers)?.is_empty();
            let Some((from, total)) = file::range(&response, is_coded, left) else {
                return match left {
                    Some(_) => Ok(OpenedFile::Changed(head)),
                    None => Err(Failure::new(Class::Body, "a part of a file, which was not asked for")),
                };
            };
            let limit = Limit::File(max_size);
            if total.is_some_and(|total| total > max_size) {
                return Err(limit.exceeded());
            }
            let (origin, period) = (self.odd.origin(response.url()), self.settings.timeout);
            let learn = Box::new(move |unread| origin.learn(unread));
            let body = Body::open(response, limit).await.map_err(&learn)?;
            let opening = Opening { url: url.clone(), from, total, period, learn };
            Ok(OpenedFile::Body(Box::new(opening.body(head, &headers, body))))
        })
        .await
    }

    /// Returns the redirect of a response to a request for `url` with `method`, whose redirects have come to `hop`.
    fn redirect(
        &self,
        url: &CanonicalUrl,
        method: Method,
        hop: Option<&Hop>,
        response: &reqwest::Response,
    ) -> Result<Option<Redirect>, Failure> {
        let target = redirect::target(&self.guard, url, response)?;
        let was_get = hop.is_some_and(|hop| hop.as_get);
        let as_get = !was_get && method.becomes_get(response.status().as_u16());
        Ok(target.map(|target| Redirect { target, as_get }))
    }

    /// Sends one request for `url`, and returns the body as it arrives, of any type and size: for sitemaps, whose
    /// reader has limits of its own. The time limit applies to the response, and anew to each part of the body. Callers
    /// that follow redirects count them with a [`Trail`](crate::Trail).
    pub async fn open(
        &self,
        url: &CanonicalUrl,
    ) -> Result<Opened<impl Stream<Item = Result<Bytes, Failure>> + Send + use<>>, Failure> {
        let timeout = self.settings.timeout;
        self.within_limit(url, Method::Get, move |exit| async move {
            let response = self.request(exit, url, Sent::get(HeaderMap::new())).await?;
            if let Some(target) = redirect::target(&self.guard, url, &response)? {
                return Ok(Opened::Redirect(target));
            }
            if !response.status().is_success() {
                return Err(failure::status(&response));
            }
            let head = self.head(&response);
            let origin = self.odd.origin(response.url());
            let body = Body::open(response, Limit::Stream).await.map_err(|unread| origin.learn(unread))?;
            let parts = stream::try_unfold((body, origin), move |(mut body, origin)| async move {
                let part = within(timeout, body.next()).await.map_err(|unread| origin.learn(unread))?;
                Ok(part.map(|part| (part, (body, origin))))
            });
            Ok(Opened::Body(head, parts))
        })
        .await
    }

    /// Sends one request for `url`, and reads the first `most` bytes of the response, all within `fetch.timeout`: for
    /// `robots.txt` (RFC 9309 2.3.1), where every status has a meaning. A redirect to a forbidden URL is a [`Failure`]
    /// of class `forbidden`.
    pub(super) async fn start(&self, url: &CanonicalUrl, most: usize) -> Result<answer::Hop, Failure> {
        self.within_limit(url, Method::Get, move |exit| async move {
            let response = self.request(exit, url, Sent::get(HeaderMap::new())).await?;
            if let Some(target) = redirect::target(&self.guard, url, &response)? {
                return Ok(answer::Hop::Redirect(target));
            }
            let status = response.status();
            let retry_after = failure::retry_after(response.headers());
            let body = if status.is_success() {
                let origin = self.odd.origin(response.url());
                let start = async { Body::open(response, Limit::Stream).await?.read_start(most).await }.await;
                start.map_err(|unread| origin.learn(unread))?
            } else {
                Bytes::new()
            };
            Ok(answer::Hop::Start(BodyStart { status: status.as_u16(), body, retry_after }))
        })
        .await
    }

    /// Sends a request through `exit`.
    async fn request(
        &self,
        exit: &Self,
        url: &CanonicalUrl,
        sent: Sent,
    ) -> Result<reqwest::Response, Failure> {
        let sent = sent.beside(self.own_fields(url));
        let parsed = url.to_url();
        exit.guard.check_behind(exit.proxy.as_ref(), &parsed).await?;
        let proxy = exit.proxy.as_ref().filter(|proxy| proxy.answers_itself(&parsed));
        let response = exit.send(parsed, sent).await?;
        if let Some(proxy) = proxy
            && response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED
        {
            return Err(proxy.refusal());
        }
        self.take_cookies(url, response.headers());
        Ok(response)
    }

    /// Whether requests go through no proxy.
    fn is_direct(&self) -> bool {
        self.proxy.is_none() && self.exits.is_none()
    }

    /// Returns the spider's own fields for `url`, and those of its session.
    fn own_fields(&self, url: &CanonicalUrl) -> HeaderMap {
        let mut own = self.own.as_ref().map(|own| own.fields(url)).unwrap_or_default();
        if let Some(session) = &self.session {
            session::add_fields(&**session, url, &mut own);
        }
        own
    }

    /// Returns the result of `call`, which requests `url` with `method` through the fetcher that it is given: this one,
    /// or that of one of several proxies. If a proxy is away, the next one is taken, unless it may have passed on
    /// something that has effects.
    async fn within_limit<'a, T, F: Future<Output = Result<T, Failure>>>(
        &'a self,
        url: &CanonicalUrl,
        method: Method,
        call: impl Fn(&'a Self) -> F,
    ) -> Result<T, Failure> {
        let Some(exits) = &self.exits else { return self.through(self, url, method, &call).await };
        let host = url.host();
        let mut away = None;
        for (number, exit) in exits.for_host(&host).take(MAX_EXITS) {
            let answer = self.through(exit, url, method, &call).await;
            exits.note(number, &host, answer.as_ref().err());
            match answer {
                Err(failure) if failure.class == Class::Proxy && is_safe(method) => away = Some(failure),
                answer => return answer,
            }
        }
        Err(away.unwrap_or_else(|| Failure::new(Class::Proxy, "no proxy is named")))
    }

    /// Returns the result of `call` through `exit`, within `fetch.timeout`. It is called once more if its answer showed
    /// that the origin answers oddly. A failure names what is to blame.
    async fn through<'a, T, F: Future<Output = Result<T, Failure>>>(
        &'a self,
        exit: &'a Self,
        url: &CanonicalUrl,
        method: Method,
        call: &impl Fn(&'a Self) -> F,
    ) -> Result<T, Failure> {
        let parsed = url.to_url();
        let origin = self.odd.origin(&parsed);
        let twice = async {
            let may_repeat = self.is_direct() && is_safe(method) && !origin.is_odd();
            match call(exit).await {
                Err(unread) if unread.class == Class::Body && may_repeat && origin.is_odd() => {
                    call(exit).await
                }
                answer => answer,
            }
        };
        match within(self.settings.timeout, twice).await {
            Err(failure) => Err(blame::assign(failure, exit.proxy.as_ref(), &exit.guard, &parsed).await),
            answer => answer,
        }
    }

    /// Sends a request on the fetcher's threads, where its connection is read to the end of the response.
    async fn send(&self, url: Url, sent: Sent) -> Result<reqwest::Response, Failure> {
        let Sent { method, mut fields, body, .. } = sent;
        if open_files::is_scarce() {
            fields.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let asked = url.clone();
        let again = (self.proxy.is_none() && body.is_empty() && method.is_safe())
            .then(|| (method.clone(), fields.clone()));
        if let Some((method, fields)) = &again
            && self.odd.origin(&asked).is_odd()
            && let Ok(answer) = self.ask_again(method.clone(), &asked, fields.clone()).await
        {
            return Ok(answer);
        }
        let request = self.client.request(method, url).headers(fields);
        let answer = if body.is_empty() { request } else { request.body(body) }.send();
        let answer = match &self.threads {
            Some(threads) => threads.run(answer).await,
            None => answer.await,
        };
        let (error, again) = match (answer, again) {
            (Ok(answer), Some((method, fields))) if lenient::has_two_ends(&answer) => {
                let again = self.ask_again(method, &asked, fields).await;
                return Ok(again.unwrap_or(answer));
            }
            (Ok(answer), _) => return Ok(answer),
            (Err(error), again) => (error, again),
        };
        let no_answer = || failure::no_answer(&error, &self.guard.known_addresses(&asked));
        match again {
            Some((method, fields)) if failure::is_malformed(&error) => {
                self.ask_again(method, &asked, fields).await.map_err(|_| no_answer())
            }
            _ => Err(no_answer()),
        }
    }

    /// Asks for an answer that only browsers read, and remembers whether its origin gives one.
    async fn ask_again(
        &self,
        method: reqwest::Method,
        url: &Url,
        fields: HeaderMap,
    ) -> io::Result<reqwest::Response> {
        let (guard, tls, settings) = (&self.guard, &self.tls, &self.settings);
        let ask = lenient::Ask { guard, tls, settings, method, url, common: &self.common, fields };
        let answer = ask.send().await;
        self.odd.origin(url).note(answer.is_ok());
        answer
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
            _ => self.whole(response).await.map(Answer::Page),
        }
    }

    /// Returns a response of any status and type. A refusal whose body cannot be read is still a refusal.
    async fn whatever(&self, method: Method, response: reqwest::Response) -> Result<Response, Failure> {
        let refusal = is_refusal(response.status().as_u16()).then(|| failure::status(&response));
        match method {
            Method::Head => Ok(self.head(&response)),
            _ => self.whole(response).await.map_err(|unread| refusal.unwrap_or(unread)),
        }
    }

    /// Returns a response with its body.
    async fn whole(&self, response: reqwest::Response) -> Result<Response, Failure> {
        let (head, origin) = (self.head(&response), self.odd.origin(response.url()));
        let most = Limit::Page(self.settings.max_body.as_u64());
        let body = async { Body::open(response, most).await?.read(&self.memory).await }.await;
        let body = body.map_err(|unread| origin.learn(unread))?;
        Ok(Response { fetched_at: UnixMs::now(), body, ..head })
    }

    /// Returns a response without its body.
    fn head(&self, response: &reqwest::Response) -> Response {
        Response {
            status: response.status().as_u16(),
            headers: kind::headers(response.headers()),
            redirected_to: None,
            fetched_at: UnixMs::now(),
            address: response.remote_addr().filter(|_| self.is_direct()).map(|address| address.ip()),
            body: Bytes::new(),
        }
    }
}

fn is_safe(method: Method) -> bool {
    matches!(method, Method::Get | Method::Head)
}

fn ips(addresses: &[SocketAddr]) -> Vec<IpAddr> {
    addresses.iter().map(SocketAddr::ip).collect()
}

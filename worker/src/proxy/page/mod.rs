//! The proxy of one page in a browser, which has no other way to the network.
//!
//! 1. `serve`: accepts the browser's connections on a port of the page's own, so that it is known whose a request is,
//!    and ends their TLS by `certificates` that only this process's browsers trust.
//! 2. `purpose`: tells what a request is for. Images, what stays open, and what is fetched ahead are refused.
//! 3. [`Page::answer`]: the document was fetched before, and is given from memory. A request for data waits for a slot
//!    of its host. Scripts and style sheets follow another request to their host, so many at most. A document to which
//!    scripts lead is followed as a redirect is.
//! 4. `activity`: counts what is under way, and so knows when the page is at rest.
//!
//! Each request follows the rules of the proxy for programs: addresses, robots.txt, blocks and back-offs.

mod activity;
mod answer_body;
mod certificates;
mod peer;
mod purpose;
mod serve;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{
    CONNECTION, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH, HeaderName, HeaderValue,
    TRANSFER_ENCODING,
};
use hyper::{Request, Response, StatusCode};
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::{CancellationToken, DropGuard};
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::host_schedules::HostPermit;
use trawl_common::names::CrawlRef;
use trawl_common::spider::Scope;
use trawl_common::web::headers::Headers;
use trawl_common::web::host::HostKey;
use trawl_common::web::response::Response as Fetched;
use trawl_common::web::url::CanonicalUrl;
use trawl_web::{MAX_REDIRECTS, NoPage, Trail};
use url::Url;

use self::activity::{Activity, Overdue};
use self::answer_body::AnswerBody;
pub(crate) use self::certificates::Certificates;
use self::purpose::Purpose;
use super::refusal::{Body, Refusal, empty, full};
use super::{HandlerProxy, User, forward, permits};

/// Maximum number of documents of a page and its frames whose status is kept.
const MAX_DOCUMENTS: usize = 64;

/// Fields of a response that was read: they describe how it was sent, or would keep a browser from showing it.
const NOT_GIVEN: [HeaderName; 5] =
    [CONNECTION, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING];

/// The one for whom a page is rendered.
pub(crate) struct OnBehalf {
    pub(crate) user: User,
    pub(crate) crawl: Option<CrawlRef>,
    pub(crate) scope: Scope,
}

/// The proxy of a page, until this is dropped.
pub(crate) struct PageProxy {
    page: Arc<Page>,
    address: SocketAddr,
    _ends: DropGuard,
}

/// The state of a page and its requests.
struct Page {
    proxy: Arc<HandlerProxy>,
    certificates: Arc<Certificates>,
    user: Arc<User>,
    crawl: Option<CrawlRef>,
    scope: Scope,
    activity: Arc<Activity>,
    shown: Mutex<Shown>,
    /// The number of parts that each host gives without a slot, until the next slot there.
    parts: Mutex<HashMap<HostKey, Arc<AsyncMutex<u16>>>>,
    /// Cancelled when scripts have led the page to where it may not go.
    refused: CancellationToken,
    ended: CancellationToken,
}

/// The documents of a page.
struct Shown {
    /// The document that was fetched, until the browser takes it.
    given: Option<Fetched>,
    /// The way from there to where scripts have led.
    trail: Trail,
    /// The reason why a document was not followed to, which ends the page.
    refused: Option<NoPage>,
    /// The documents that hosts have given.
    documents: Vec<Landing>,
}

/// The reason why a page does not do what it was waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// It took too long.
    Overdue,
    /// The spider has no page: scripts have led to where it may not go.
    NoPage(NoPage),
}

/// A document to which scripts have led.
#[derive(Clone, Debug)]
pub(crate) struct Landing {
    pub(crate) url: CanonicalUrl,
    pub(crate) status: u16,
    pub(crate) headers: Headers,
}

impl PageProxy {
    /// Starts the proxy of the page at `url`, whose document was fetched.
    ///
    /// # Errors
    /// Fails if the system gives it no port.
    pub(crate) fn start(
        proxy: &Arc<HandlerProxy>,
        certificates: &Arc<Certificates>,
        OnBehalf { user, crawl, scope }: OnBehalf,
        url: &CanonicalUrl,
        document: Fetched,
    ) -> io::Result<Self> {
        let host = user.own.politeness.host_policy(&url.host()).key;
        let parts = Arc::new(AsyncMutex::new(proxy.settings().browser.parts));
        let (refused, documents) = Default::default();
        let trail = Trail::new(url.clone(), MAX_REDIRECTS);
        let ended = proxy.stop.child_token();
        let page = Arc::new(Page {
            proxy: Arc::clone(proxy),
            certificates: Arc::clone(certificates),
            user: Arc::new(user),
            crawl,
            scope,
            activity: Arc::new(Activity::new()),
            shown: Mutex::new(Shown { given: Some(document), trail, refused, documents }),
            parts: Mutex::new(HashMap::from([(host, parts)])),
            refused: CancellationToken::new(),
            ended: ended.clone(),
        });
        let address = serve::start(&page)?;
        Ok(Self { page, address, _ends: ended.drop_guard() })
    }

    /// Returns the address that the browser is to use as its proxy.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the page is at rest.
    pub(crate) async fn quiet(&self) {
        self.page.activity.quiet().await;
    }

    /// Records that something is done to the page, which may make it ask for more.
    pub(crate) fn stir(&self) {
        self.page.activity.stir();
    }

    /// Waits for something that the page is to do.
    ///
    /// # Errors
    /// Fails when that takes longer than `limit`, not counting the time in which requests wait for slots, or scripts have
    /// led the page to where it may not go.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        waiting: impl Future<Output = T>,
    ) -> Result<T, Stopped> {
        tokio::select! {
            done = self.page.activity.within(limit, waiting) => done.map_err(|Overdue| Stopped::Overdue),
            () = self.page.refused.cancelled() => {
                let refused = self.page.shown.lock().refused.clone();
                Err(refused.map_or(Stopped::Overdue, Stopped::NoPage))
            }
        }
    }

    /// Returns the document at `url`, where scripts have led the page; `None` if they led nowhere.
    ///
    /// # Errors
    /// Returns the reason why the spider has no page: scripts led out of its domains, or in a circle.
    pub(crate) fn landing(&self, url: Option<&str>) -> Result<Option<Landing>, NoPage> {
        let shown = self.page.shown.lock();
        if let Some(refused) = &shown.refused {
            return Err(refused.clone());
        }
        let Some(url) = url else { return Ok(None) };
        let landed = Url::parse(url).ok().and_then(|url| CanonicalUrl::as_written(url).ok());
        if let Some(url) = landed.as_ref().filter(|url| !self.page.scope.takes(url)) {
            return Err(NoPage::OutOfScope(url.clone()));
        }
        let landing =
            shown.documents.iter().rev().find(|landing| Some(&landing.url) == landed.as_ref()).cloned();
        let nowhere =
            || Failure::new(Class::Redirect, format_args!("its scripts lead to {url}, which gave nothing"));
        Ok(Some(landing.ok_or_else(nowhere)?))
    }
}

impl Page {
    /// Answers a request of the browser.
    async fn answer(
        self: &Arc<Self>,
        purpose: Purpose,
        url: CanonicalUrl,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        let is_document = matches!(purpose, Purpose::Document | Purpose::AnyDocument);
        if is_document && let Some(document) = self.shown.lock().given.take() {
            return Ok(given(document));
        }
        if purpose == Purpose::Document && !self.follows(&url) {
            return Ok(stay());
        }
        match self.send(purpose, &url, request).await {
            Ok(response) => {
                if is_document {
                    self.note(url, &response);
                }
                Ok(response)
            }
            Err(refusal) if purpose == Purpose::Document => {
                let why = format_args!("its scripts lead to {url}: {}", refusal.why());
                self.refuse(Failure::new(Class::Redirect, why).into());
                Ok(stay())
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Sends a request on when it may be sent, and returns the answer.
    async fn send(
        self: &Arc<Self>,
        purpose: Purpose,
        url: &CanonicalUrl,
        mut request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        let under_way = self.activity.begin();
        let under_way = under_way.ok_or_else(|| Refusal::forbidden("the page has asked for too much"))?;
        let (host, permit) = self.permit(purpose, url).await?;
        under_way.progress();
        let fetcher = &self.user.own.fetcher;
        fetcher.put_own_fields(url, request.headers_mut());
        let on_behalf = (&*self.user, self.crawl.as_ref());
        let response = forward::send(&self.proxy, on_behalf, &host, permit, request).await?;
        fetcher.take_cookies(url, response.headers());
        let most = self.proxy.settings().fetch.max_body.as_u64();
        Ok(response.map(|body| AnswerBody::new(body, most, under_way).into_body()))
    }

    /// Whether the page may become the one at `url`, by the rules for redirects.
    fn follows(&self, url: &CanonicalUrl) -> bool {
        let followed = self.shown.lock().trail.follow(url.clone(), &self.scope);
        followed.map_err(|no_page| self.refuse(no_page)).is_ok()
    }

    /// Records the first reason why a document was not followed to.
    fn refuse(&self, why: NoPage) {
        self.shown.lock().refused.get_or_insert(why);
        self.refused.cancel();
    }

    /// Waits until a request may be sent. Returns the key of its host, and the permit if it takes a slot.
    async fn permit(
        self: &Arc<Self>,
        purpose: Purpose,
        url: &CanonicalUrl,
    ) -> Result<(HostKey, Option<HostPermit>), Refusal> {
        if purpose != Purpose::Part {
            let (policy, permit) = permits::request(&self.proxy, &self.user, url).await?;
            return Ok((policy.key, Some(permit)));
        }
        let host = permits::without_slot(&self.proxy, &self.user, url).await?.key;
        let parts = Arc::clone(self.parts.lock().entry(host.clone()).or_default());
        // Others wait for the slot that one takes.
        let mut left = parts.lock().await;
        match left.checked_sub(1) {
            Some(rest) => {
                *left = rest;
                Ok((host, None))
            }
            None => {
                let (_, permit) = permits::request(&self.proxy, &self.user, url).await?;
                *left = self.proxy.settings().browser.parts;
                Ok((host, Some(permit)))
            }
        }
    }

    /// Records a document that a host has given.
    fn note(&self, url: CanonicalUrl, response: &Response<Body>) {
        let mut shown = self.shown.lock();
        if shown.documents.len() < MAX_DOCUMENTS {
            let fields = response.headers().iter();
            let headers =
                fields.map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes())));
            let (status, headers) = (response.status().as_u16(), headers.collect());
            shown.documents.push(Landing { url, status, headers });
        }
    }
}

/// Returns the response with a document that was fetched.
fn given(document: Fetched) -> Response<Body> {
    let mut response = Response::new(full(document.body));
    *response.status_mut() = StatusCode::from_u16(document.status).unwrap_or(StatusCode::OK);
    let fields = document.headers.iter().filter_map(|(name, value)| {
        let name = HeaderName::try_from(name).ok().filter(|name| !NOT_GIVEN.contains(name))?;
        Some((name, HeaderValue::from_bytes(value.as_bytes()).ok()?))
    });
    for (name, value) in fields {
        response.headers_mut().append(name, value);
    }
    response
}

/// Returns the response after which a browser stays where it is (RFC 9110 15.3.5).
fn stay() -> Response<Body> {
    let mut response = Response::new(empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

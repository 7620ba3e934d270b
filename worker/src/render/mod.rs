//! Has pages rendered by a browser.
//!
//! 1. Waits for a place in a browser.
//! 2. Opens a tab whose only way to the network is a proxy of its own, which has the page's document.
//! 3. Goes there, and waits until the page is at rest.
//! 4. Takes the steps of the spider (`steps`).
//! 5. Returns the document as its scripts have left it, in place of the one that was sent.
//!
//! A lost browser is no page's fault: the page comes back, to a browser of its own. Only a page whose browsers are lost
//! again and again fails.

mod steps;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use tokio::time::timeout;
use trawl_browser::{Counts, Document, Lease, NoLease, PageError, Pool, Tab};
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::settings::Settings;
use trawl_common::spider::PageStep;
use trawl_common::time::UnixMs;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;
use trawl_handlers::Supervisor;
use trawl_web::NoPage;

use crate::proxy::HandlerProxy;
use crate::proxy::page::{Certificates, Landing, OnBehalf, PageProxy, Stopped};

/// Number of lost browsers after which the page that each of them had fails.
const MAX_LOST: u8 = 3;

/// Maximum number of pages whose lost browsers are counted.
const MAX_COUNTED: u64 = 10_000;

/// Delay before a page is rendered again whose browser was lost.
const LOST_DELAY: Duration = Duration::from_secs(1);

/// The type of a document as scripts have left it.
const CONTENT_TYPE: (&str, &str) = ("content-type", "text/html; charset=utf-8");

/// Renders the pages of a process.
pub(crate) struct Renderer {
    pool: Pool,
    proxy: Arc<HandlerProxy>,
    certificates: Arc<Certificates>,
    /// The number of browsers that were lost with a page.
    lost: Cache<CanonicalUrl, u8>,
}

/// An account of how a page was rendered, for people.
#[derive(Debug, Default)]
pub struct RenderReport {
    /// The steps that were taken, each with its time.
    pub steps: Vec<(String, Duration)>,
    /// Whether a picture of the page is wanted.
    pub is_pictured: bool,
    /// The picture as PNG, or why there is none.
    pub picture: Option<Result<Vec<u8>, PageError>>,
}

/// The reason why a page is not rendered.
#[derive(Debug)]
pub(crate) enum Unrendered {
    /// The spider has no page.
    NoPage(NoPage),
    /// Not now, for this reason: the page may be rendered after this time.
    Later(String, Duration),
}

/// The reason why a tab gives no page.
enum NoDocument {
    /// The tab failed, or its browser was lost.
    Tab(PageError),
    /// The spider has no page.
    NoPage(NoPage),
    /// The system gives its proxy no port.
    NoPort(io::Error),
}

impl From<PageError> for NoDocument {
    fn from(error: PageError) -> Self {
        Self::Tab(error)
    }
}

impl From<NoPage> for NoDocument {
    fn from(no_page: NoPage) -> Self {
        Self::NoPage(no_page)
    }
}

impl From<Failure> for NoDocument {
    fn from(failure: Failure) -> Self {
        Self::NoPage(failure.into())
    }
}

impl Renderer {
    /// Creates a renderer whose browsers send their requests through `proxy`. None is started before it is needed.
    pub(crate) fn new(proxy: &Arc<HandlerProxy>) -> Self {
        let certificates = Certificates::new();
        let pool = Pool::new(proxy.settings(), certificates.spki(), Supervisor::default());
        let lost = Cache::new(MAX_COUNTED);
        Self { pool, proxy: Arc::clone(proxy), certificates: Arc::new(certificates), lost }
    }

    /// Returns the settings in use.
    pub(crate) fn settings(&self) -> &Settings {
        self.proxy.settings()
    }

    /// Returns the numbers of its browsers.
    pub(crate) fn counts(&self) -> &Arc<Counts> {
        self.pool.counts()
    }

    /// Renders the page at `url`, whose document was fetched with `response`, and takes these steps in it.
    ///
    /// # Errors
    /// Returns the reason why it is not rendered.
    pub(crate) async fn render(
        &self,
        on_behalf: OnBehalf,
        url: &CanonicalUrl,
        response: Response,
        steps: &[PageStep],
        report: &mut RenderReport,
    ) -> Result<Response, Unrendered> {
        let leased = match self.lost.contains_key(url) {
            true => self.pool.lease_alone().await,
            false => self.pool.lease().await,
        };
        let lease = leased.map_err(|NoLease { why, after }| Unrendered::Later(why, after))?;
        match self.render_in(lease, on_behalf, (url, response), steps, report).await {
            Err(NoDocument::Tab(PageError::Lost)) => Err(self.lose(url)),
            Err(NoDocument::Tab(error)) => Err(Unrendered::NoPage(failure(&error).into())),
            Err(NoDocument::NoPage(no_page)) => Err(Unrendered::NoPage(no_page)),
            Err(NoDocument::NoPort(error)) => Err(Unrendered::Later(error.to_string(), LOST_DELAY)),
            Ok(response) => {
                self.lost.invalidate(url);
                Ok(response)
            }
        }
    }

    /// Counts a browser that was lost with the page at `url`, and decides whether the page is to blame.
    fn lose(&self, url: &CanonicalUrl) -> Unrendered {
        let lost = self.lost.get(url).unwrap_or_default() + 1;
        if lost < MAX_LOST {
            self.lost.insert(url.clone(), lost);
            return Unrendered::Later("a browser was lost".to_owned(), LOST_DELAY);
        }
        // Its next attempt has a browser of its own from the start.
        self.lost.insert(url.clone(), 1);
        let why = format_args!("{lost} browsers were lost while they rendered it");
        Unrendered::NoPage(Failure::new(Class::Crash, why).into())
    }

    async fn render_in(
        &self,
        lease: Lease,
        on_behalf: OnBehalf,
        (url, response): (&CanonicalUrl, Response),
        steps: &[PageStep],
        report: &mut RenderReport,
    ) -> Result<Response, NoDocument> {
        let user_agent = on_behalf.user.own.fetcher.user_agent().to_owned();
        let proxy = PageProxy::start(&self.proxy, &self.certificates, on_behalf, url, response.clone());
        let proxy = proxy.map_err(NoDocument::NoPort)?;
        let mut tab = Tab::open(lease, proxy.address(), &user_agent).await?;
        let shown = self.show((&mut tab, &proxy), url, steps, &mut report.steps).await;
        if report.is_pictured {
            report.picture = Some(tab.picture().await);
        }
        shown?;
        let Document { html, landed } = tab.document(self.settings().fetch.max_body.as_u64()).await?;
        let landing = proxy.landing(landed.as_deref())?;
        Ok(rendered(response, landing, html)?)
    }

    /// Has a tab show a page, and takes the steps in it.
    async fn show(
        &self,
        (tab, proxy): (&mut Tab, &PageProxy),
        url: &CanonicalUrl,
        steps: &[PageStep],
        taken: &mut Vec<(String, Duration)>,
    ) -> Result<(), NoDocument> {
        let limit = self.settings().fetch.timeout;
        let overdue =
            || Failure::new(Class::Timeout, format_args!("its document is not there after {limit:?}"));
        timeout(limit, tab.go(url.as_str())).await.map_err(|_| overdue())??;
        let loaded = tab.loaded().cancelled_owned();
        let resting = async {
            loaded.await;
            proxy.quiet().await;
        };
        match tab.during(proxy.within(limit, resting)).await? {
            Err(Stopped::Overdue) if !tab.is_parsed() => return Err(overdue().into()),
            Err(Stopped::NoPage(no_page)) => return Err(no_page.into()),
            Ok(()) | Err(Stopped::Overdue) => {}
        }
        steps::take(tab, proxy, (steps, limit), taken).await
    }
}

/// Returns the failure of a page whose tab failed.
fn failure(error: &PageError) -> Failure {
    let class = match error {
        PageError::Crashed => Class::Crash,
        PageError::Endless => Class::Timeout,
        PageError::TooLarge(_) => Class::Size,
        PageError::Lost
        | PageError::Closed
        | PageError::NotShown(_)
        | PageError::Threw(_)
        | PageError::Refused(_) => Class::Body,
    };
    Failure::new(class, format_args!("rendering it: {error}"))
}

/// Returns the response with the document that scripts have left, which is where they have led.
fn rendered(response: Response, landing: Option<Landing>, html: String) -> Result<Response, Failure> {
    let (status, headers, redirected_to) = match landing {
        Some(Landing { url, status: status @ 200..=299, headers }) => {
            (status, headers, Some(url.normalised()))
        }
        Some(Landing { url, status, .. }) => {
            let failure = Failure::new(Class::Http, format_args!("{status}: its scripts lead to {url}"));
            return Err(Failure { status: Some(status), ..failure });
        }
        None => (response.status, response.headers, response.redirected_to),
    };
    let others = headers.iter().filter(|(name, _)| *name != CONTENT_TYPE.0);
    let headers = others.chain([CONTENT_TYPE]).collect();
    Ok(Response { status, headers, redirected_to, fetched_at: UnixMs::now(), body: html.into(), ..response })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response() -> Response {
        let headers = [("content-type", "text/html; charset=koi8-r"), ("etag", "x")].into_iter().collect();
        let (redirected_to, address) = Default::default();
        Response {
            status: 203,
            headers,
            redirected_to,
            fetched_at: UnixMs(1),
            address,
            body: "before".into(),
        }
    }

    fn landing(status: u16) -> Option<Landing> {
        let headers = [("content-type", "text/html"), ("x-own", "1")].into_iter().collect();
        Some(Landing { url: "http://a.example/%7eb".parse().unwrap(), status, headers })
    }

    #[test]
    fn a_rendered_page_has_the_fields_of_its_document_and_is_utf_8() {
        let rendered = rendered(response(), None, "after".to_owned()).unwrap();
        assert_eq!((rendered.status, &rendered.body[..], rendered.redirected_to), (203, &b"after"[..], None));
        let fields: Vec<_> = rendered.headers.iter().collect();
        assert_eq!(fields, [("etag", "x"), ("content-type", "text/html; charset=utf-8")]);
    }

    #[test]
    fn where_scripts_lead_counts_as_a_redirect_does() {
        let page = rendered(response(), landing(201), "after".to_owned()).unwrap();
        assert_eq!((page.status, page.headers.get("x-own")), (201, Some("1")));
        assert_eq!(page.redirected_to.unwrap().as_str(), "http://a.example/~b");
        let failure = rendered(response(), landing(404), String::new()).unwrap_err();
        assert_eq!((failure.class, failure.status), (Class::Http, Some(404)));
    }
}

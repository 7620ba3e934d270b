//! A synthetic site of a [`Layout`], and a log of what it was asked, when, and by whom.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::fate::{Fate, HELD_BACK};
use super::layout::{Layout, Leaf};
use super::ledger::{Ask, Page};

/// Most URLs in one sitemap.
const SITEMAP: usize = 50;
/// A request within the pace takes up to this long.
const LATENCY: Duration = Duration::from_millis(20);
/// A running site. Where it is listed, `/sitemap.xml` names sitemaps, and those name the pages. Ends when dropped.
pub struct Web {
    /// `http://127.0.0.1:port`
    pub origin: String,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

struct Shared {
    origin: String,
    start: Instant,
    pages: Vec<Page>,
    layout: Layout,
    log: Mutex<Log>,
    progress: watch::Sender<Progress>,
    /// So many different pages are answered at once.
    pace: watch::Sender<usize>,
}

#[derive(Default)]
struct Log {
    asks: Vec<Ask>,
    /// How often each page was asked for.
    times: HashMap<usize, usize>,
    /// The pages that a crawl can know of, in the order in which it was announced.
    announced: Vec<usize>,
    is_reported: HashSet<usize>,
}

impl Log {
    fn new(layout: &Layout) -> Self {
        let mut log = Self::default();
        if !layout.is_listed {
            log.announce([0]);
        }
        log
    }

    fn announce(&mut self, pages: impl IntoIterator<Item = usize>) {
        for page in pages {
            if self.is_reported.insert(page) {
                self.announced.push(page);
            }
        }
    }
}

/// How far a crawl has come, as the site sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Different pages that were asked for.
    pub pages: usize,
    /// When a page was last answered, since the start.
    pub last: Duration,
}

impl Web {
    /// A site of this layout. Times in its log are since `start`.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn serve(layout: Layout, start: Instant) -> io::Result<Self> {
        Self::serve_at(Ipv4Addr::LOCALHOST, layout, start).await
    }

    /// The same at another address of this machine: trawl takes all sites at one address for one domain, whose slow pages share
    /// their permits.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn serve_at(ip: Ipv4Addr, layout: Layout, start: Instant) -> io::Result<Self> {
        let listener = TcpListener::bind((ip, 0)).await?;
        let origin = format!("http://{}", listener.local_addr()?);
        let page = |(number, leaf): (usize, &Leaf)| Page { url: address(&origin, number), fate: leaf.fate };
        let pages = layout.leaves.iter().enumerate().map(page).collect();
        let log = Log::new(&layout);
        let shared = Arc::new(Shared {
            origin: origin.clone(),
            start,
            pages,
            layout,
            log: Mutex::new(log),
            progress: watch::Sender::default(),
            pace: watch::Sender::new(0),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { origin, shared, serving })
    }

    /// The sitemap that names all, or else the first page.
    pub fn source(&self) -> String {
        if self.shared.layout.is_listed {
            format!("{}/sitemap.xml", self.origin)
        } else {
            self.shared.pages[0].url.clone()
        }
    }

    /// Every page.
    pub fn pages(&self) -> &[Page] {
        &self.shared.pages
    }

    /// Whether a URL is one of this site's.
    pub fn has(&self, url: &str) -> bool {
        url.strip_prefix(&self.origin).is_some_and(|path| path.starts_with('/'))
    }

    /// What was asked for so far, in order.
    pub fn log(&self) -> Vec<Ask> {
        self.shared.log().asks.clone()
    }

    /// How far a crawl has come.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.shared.progress.subscribe()
    }

    /// How many pages sitemaps, links and redirects have named so far.
    pub fn announced(&self) -> usize {
        self.shared.log().announced.len()
    }

    /// Waits until each of the first `pages` pages that were named has been asked for.
    pub async fn all_asked(&self, pages: usize) {
        let mut progress = self.progress();
        // What has been asked for stays so: each page is looked at once.
        let mut first = 0;
        let all = |_: &Progress| {
            let log = self.shared.log();
            first = (first..pages).find(|at| !log.times.contains_key(&log.announced[*at])).unwrap_or(pages);
            first == pages
        };
        let _ = progress.wait_for(all).await;
    }

    /// Forgets what was asked for, as if it had just begun.
    pub fn forget(&self) {
        self.pace(0);
        *self.shared.log() = Log::new(&self.shared.layout);
        self.shared.progress.send_replace(Progress::default());
    }

    /// Lets a crawl come quickly to so many different pages, and go on slowly from there.
    pub fn pace(&self, pages: usize) {
        self.shared.pace.send_replace(pages);
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Every fifth page is news: the default rules route it to the priority lane.
fn address(origin: &str, number: usize) -> String {
    let folder = if number.is_multiple_of(5) { "news" } else { "page" };
    format!("{origin}/{folder}/{number}")
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let path = request.uri().path();
    if path == "/sitemap.xml" {
        return xml(shared.index());
    }
    if let Some(number) = number(path, "/sitemap-", ".xml") {
        shared.caught_up(number).await;
        return xml(shared.sitemap(number));
    }
    let page = number(path, "/page/", "").or_else(|| number(path, "/news/", ""));
    let Some(page) = page.filter(|page| *page < shared.pages.len()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let who = request.headers().get(header::USER_AGENT).and_then(|name| name.to_str().ok());
    let who = who.and_then(|name| number(name, "worker-", "")).unwrap_or_default();
    shared.answer_page(page, who).await
}

fn number(text: &str, before: &str, after: &str) -> Option<usize> {
    text.strip_prefix(before)?.strip_suffix(after)?.parse().ok()
}

fn xml(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/xml")], text).into_response()
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn index(&self) -> String {
        let log = self.log();
        let entry = |number| format!("<sitemap><loc>{}/sitemap-{number}.xml</loc></sitemap>\n", self.origin);
        // Like a site that lists what is new: a producer that reads it after Redis forgot all finds what is left.
        let is_new = |number: &usize| self.pages_of(*number).any(|page| !log.times.contains_key(&page));
        let count = self.pages.len().div_ceil(self.share());
        let entries: String = (0..count).filter(is_new).map(entry).collect();
        format!(
            "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n{entries}</sitemapindex>\n"
        )
    }

    fn sitemap(&self, number: usize) -> String {
        let entry = |page: usize| format!("<url><loc>{}</loc></url>\n", self.pages[page].url);
        let entries: String = self.pages_of(number).map(entry).collect();
        format!("<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n{entries}</urlset>\n")
    }

    /// The pages that a sitemap names.
    fn pages_of(&self, sitemap: usize) -> Range<usize> {
        let end = self.pages.len();
        (sitemap * self.share()).min(end)..((sitemap + 1) * self.share()).min(end)
    }

    /// URLs in each sitemap: at least some sitemaps, so that a producer lives for a while.
    fn share(&self) -> usize {
        (self.pages.len() / 10).clamp(1, SITEMAP)
    }

    /// The producer runs beside the crawl, not before it, and is never far ahead: its faults meet it at work, and what
    /// waits in the servers is soon fetched.
    async fn caught_up(&self, sitemap: usize) {
        let wanted = sitemap.saturating_sub(1) * self.share();
        let mut progress = self.progress.subscribe();
        // The sender lives as long as the site.
        let _ = progress.wait_for(|progress| progress.pages >= wanted).await;
        self.log().announce(self.pages_of(sitemap));
    }

    async fn answer_page(&self, page: usize, who: usize) -> Response {
        let (ask, times, pages) = {
            let mut log = self.log();
            let times = log.times.entry(page).or_default();
            *times += 1;
            let times = *times;
            log.asks.push(Ask { page, who, asked: self.start.elapsed(), answered: None });
            (log.asks.len() - 1, times, log.times.len())
        };
        self.progress.send_modify(|progress| progress.pages = pages);
        let latency = LATENCY.mul_f64(rand::random());
        // What is asked for again, as Redis forgot it, takes no crawl further.
        let is_held_back = pages > *self.pace.borrow() && times == 1;
        let long = HELD_BACK.mul_f64(rand::random_range(0.5..1.0));
        let held_back = if is_held_back { long } else { Duration::ZERO };
        let mut pace = self.pace.subscribe();
        let _ = timeout(held_back, pace.wait_for(|pace| pages <= *pace)).await;
        sleep(latency).await;
        if self.pages[page].fate == Fate::Silent {
            std::future::pending::<()>().await;
        }
        // Not reached when the one who asked has gone.
        let now = self.start.elapsed();
        self.log().asks[ask].answered = Some(now);
        self.progress.send_modify(|progress| progress.last = now);
        match self.pages[page].fate {
            Fate::Missing => StatusCode::NOT_FOUND.into_response(),
            Fate::Broken => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            Fate::Flaky(failures) if times <= failures => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            Fate::Redirect(to) => {
                self.log().announce([to]);
                (StatusCode::FOUND, [(header::LOCATION, &self.pages[to].url)]).into_response()
            }
            Fate::Good | Fate::Flaky(_) | Fate::Silent => {
                self.log().announce(self.layout.leaves[page].links.iter().copied());
                self.page(page).into_response()
            }
        }
    }

    fn page(&self, page: usize) -> Html<String> {
        let link = |to: &usize| format!("<a href=\"{}\">{to}</a>\n", self.pages[*to].url);
        let links: String = self.layout.leaves[page].links.iter().map(link).collect();
        Html(format!(
            "<!doctype html><html lang=\"en\"><title>Page {page}</title><b>{page}</b>\n{links}</html>\n"
        ))
    }
}

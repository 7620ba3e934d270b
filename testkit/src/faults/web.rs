//! A synthetic site of a [`Layout`], and a log of its requests.

mod listing;

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::fate::{CATCHING_UP, Fate, HELD_BACK};
use super::layout::Layout;
use super::ledger::{Ask, Page};
use super::recipes::{self, Arrived, Recipes, address};
use super::units::Units;

/// The output of a task's program if the page failed.
const FAILED: &str = r#"{"result": 1, "logs": [{"message": "the page failed", "level": 3}]}"#;
/// Maximum time of a request within the pace.
const LATENCY: Duration = Duration::from_millis(20);
/// A running site. If it is listed, `/sitemap.xml` names sitemaps, and those name the pages. Ends when dropped.
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
    keys: HashSet<String>,
    layout: Layout,
    units: Units,
    spider: &'static str,
    log: Mutex<Log>,
    progress: watch::Sender<Progress>,
    pace: watch::Sender<Pace>,
}

/// How quickly a crawl may go on.
#[derive(Clone, Copy)]
struct Pace {
    /// Number of different pages that are answered without delay.
    pages: usize,
    /// Maximum delay of each page beyond them.
    held_back: Duration,
}

#[derive(Default)]
struct Log {
    asks: Vec<Ask>,
    /// Number of requests by page.
    times: HashMap<usize, usize>,
    /// The pages that a crawl can know of, in the order in which they were announced.
    announced: Vec<usize>,
    is_reported: HashSet<usize>,
    /// Invalid requests.
    complaints: Vec<String>,
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

/// The progress of a crawl, as the site sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Number of different pages that were requested.
    pub pages: usize,
    /// When a page was last answered, since the start.
    pub last: Duration,
}

impl Web {
    /// Serves a site of this layout. Times in its log are since `start`.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn serve(layout: Layout, start: Instant) -> io::Result<Self> {
        Self::serve_at(Ipv4Addr::LOCALHOST, layout, start).await
    }

    /// Serves a site for a crawl of these units. A program needs the name of its spider.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn serve_units(
        units: Units,
        spider: Option<&'static str>,
        layout: Layout,
        start: Instant,
    ) -> io::Result<Self> {
        Self::bind(Ipv4Addr::LOCALHOST, (units, spider.unwrap_or_default()), layout, start).await
    }

    /// Serves a site at another address of this machine. trawl takes all sites at one address for one domain, whose
    /// slow pages share their permits.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn serve_at(ip: Ipv4Addr, layout: Layout, start: Instant) -> io::Result<Self> {
        Self::bind(ip, (Units::Pages, ""), layout, start).await
    }

    async fn bind(
        ip: Ipv4Addr,
        (units, spider): (Units, &'static str),
        layout: Layout,
        start: Instant,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((ip, 0)).await?;
        let origin = format!("http://{}", listener.local_addr()?);
        let pages = Recipes { origin: &origin, spider, leaves: &layout.leaves }.pages(units);
        let log = Log::new(&layout);
        let shared = Arc::new(Shared {
            origin: origin.clone(),
            start,
            keys: pages.iter().map(|page: &Page| page.key.clone()).collect(),
            pages,
            layout,
            units,
            spider,
            log: Mutex::new(log),
            progress: watch::Sender::default(),
            pace: watch::Sender::new(Pace { pages: 0, held_back: HELD_BACK }),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { origin, shared, serving })
    }

    /// Returns the URL of the sitemap that names all pages, or of the first page if there are none.
    pub fn source(&self) -> String {
        if self.shared.layout.is_listed {
            format!("{}/sitemap.xml", self.origin)
        } else {
            address(&self.origin, 0)
        }
    }

    /// Returns the sources for a producer: the [source](Self::source), or the lists of tasks.
    pub fn sources(&self) -> Vec<String> {
        if self.shared.units != Units::Tasks {
            return vec![self.source()];
        }
        (0..self.shared.lists()).map(|number| format!("{}/tasks-{number}.jsonl", self.origin)).collect()
    }

    /// Returns all pages.
    pub fn pages(&self) -> &[Page] {
        &self.shared.pages
    }

    /// Whether `key` is a URL of this site, or the key of one of its tasks.
    pub fn has(&self, key: &str) -> bool {
        let is_url = key.strip_prefix(&self.origin).is_some_and(|path| path.starts_with('/'));
        is_url || self.shared.keys.contains(key)
    }

    /// Returns the invalid requests so far.
    pub fn complaints(&self) -> Vec<String> {
        self.shared.log.lock().complaints.clone()
    }

    /// Returns the requests so far, in order.
    pub fn log(&self) -> Vec<Ask> {
        self.shared.log.lock().asks.clone()
    }

    /// Returns the progress of the crawl.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.shared.progress.subscribe()
    }

    /// Returns the number of pages that sitemaps, links and redirects have named so far.
    pub fn announced(&self) -> usize {
        self.shared.log.lock().announced.len()
    }

    /// Waits until each of the first `pages` pages that were named has been requested.
    pub async fn all_asked(&self, pages: usize) {
        let mut progress = self.progress();
        // Each page is checked only until it has been requested.
        let mut first = 0;
        let all = |_: &Progress| {
            let log = self.shared.log.lock();
            first = (first..pages).find(|at| !log.times.contains_key(&log.announced[*at])).unwrap_or(pages);
            first == pages
        };
        let _ = progress.wait_for(all).await;
    }

    /// Returns the first page that was named and has not been requested, if there is one.
    pub fn first_unasked(&self) -> Option<Page> {
        let log = self.shared.log.lock();
        let page = log.announced.iter().find(|page| !log.times.contains_key(page))?;
        Some(self.shared.pages[*page].clone())
    }

    /// Forgets all requests, as if the site had just started.
    pub fn forget(&self) {
        self.pace(0);
        *self.shared.log.lock() = Log::new(&self.shared.layout);
        self.shared.progress.send_replace(Progress::default());
    }

    /// Lets a crawl request `pages` different pages quickly, and go on slowly from there.
    pub fn pace(&self, pages: usize) {
        self.shared.pace.send_replace(Pace { pages, held_back: HELD_BACK });
    }

    /// Lets a crawl request `pages` different pages quickly, and go on from there without being taken for slow: URLs
    /// that wait since a slow time return, and come in their turn.
    pub fn catch_up(&self, pages: usize) {
        self.shared.pace.send_replace(Pace { pages, held_back: CATCHING_UP });
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    // The client may be gone.
    let Ok(body) = to_bytes(body, usize::MAX).await else { return StatusCode::BAD_REQUEST.into_response() };
    let path = head.uri.path();
    if let Some(list) = shared.listing(path).await {
        return list;
    }
    if path == "/robots.txt" {
        return StatusCode::NOT_FOUND.into_response();
    }
    let who = head.headers.get(header::USER_AGENT).and_then(|name| name.to_str().ok());
    let who = who.and_then(|name| number(name, "worker-", "")).unwrap_or_default();
    let arrived = match shared.units {
        Units::Pages => {
            let page = number(path, "/page/", "").or_else(|| number(path, "/news/", ""));
            let page = page.filter(|page| *page < shared.pages.len());
            page.map(Arrived::at).ok_or(String::new())
        }
        Units::Tasks => shared.recipes().arrived_task(&body),
        Units::Requests => shared.recipes().arrived_request((&head.method, path), &head.headers, &body),
    };
    match arrived {
        Ok(arrived) => shared.answer_page(arrived, who).await,
        Err(complaint) => {
            // An unknown path is no complaint for pages: other promises cover that.
            shared.log.lock().complaints.extend(Some(complaint).filter(|complaint| !complaint.is_empty()));
            StatusCode::NOT_FOUND.into_response()
        }
    }
}

fn number(text: &str, before: &str, after: &str) -> Option<usize> {
    text.strip_prefix(before)?.strip_suffix(after)?.parse().ok()
}

impl Shared {
    fn recipes(&self) -> Recipes<'_> {
        Recipes { origin: &self.origin, spider: self.spider, leaves: &self.layout.leaves }
    }

    async fn answer_page(&self, Arrived { page, via }: Arrived, who: usize) -> Response {
        let (ask, times, pages) = {
            let mut log = self.log.lock();
            // A redirected request does not count as one of the target's own.
            if via.is_none() {
                *log.times.entry(page).or_default() += 1;
            }
            let times = log.times.get(&page).copied().unwrap_or_default();
            log.asks.push(Ask { page, via, who, asked: self.start.elapsed(), answered: None });
            (log.asks.len() - 1, times, log.times.len())
        };
        self.progress.send_modify(|progress| progress.pages = pages);
        let latency = LATENCY.mul_f64(rand::random());
        // A page that is requested again, as Redis forgot it, takes no crawl further.
        let is_held_back = |pace: &Pace| pages > pace.pages && times == 1 && via.is_none();
        let mut pace = self.pace.subscribe();
        let long = pace.borrow().held_back.mul_f64(rand::random_range(0.5..1.0));
        let _ = timeout(long, pace.wait_for(|pace| !is_held_back(pace))).await;
        sleep(latency).await;
        if self.pages[page].fate == Fate::Silent {
            std::future::pending::<()>().await;
        }
        // Not reached if the client is gone.
        let now = self.start.elapsed();
        self.log.lock().asks[ask].answered = Some(now);
        self.progress.send_modify(|progress| progress.last = now);
        let status = match self.pages[page].fate {
            Fate::Missing => StatusCode::NOT_FOUND,
            Fate::Broken => StatusCode::INTERNAL_SERVER_ERROR,
            Fate::Flaky(failures) if times <= failures => StatusCode::INTERNAL_SERVER_ERROR,
            Fate::Redirect(to) => {
                self.log.lock().announce([to]);
                let kept = self.units == Units::Requests && recipes::is_kept(page);
                let status = if kept { StatusCode::TEMPORARY_REDIRECT } else { StatusCode::FOUND };
                return (status, [(header::LOCATION, address(&self.origin, to))]).into_response();
            }
            Fate::Good | Fate::Flaky(_) | Fate::Silent => {
                self.log.lock().announce(self.layout.leaves[page].links.iter().copied());
                return self.shown(page);
            }
        };
        match self.units {
            Units::Tasks => FAILED.into_response(),
            _ => status.into_response(),
        }
    }

    /// Returns the contents of a page, or its program's output.
    fn shown(&self, page: usize) -> Response {
        match self.units {
            Units::Pages => self.page(page).into_response(),
            units => self.recipes().said(page, units).to_string().into_response(),
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

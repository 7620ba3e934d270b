//! A synthetic web: many hosts, each with its own loopback address, and one log of all requests.

use std::future::pending;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::hostile::{Hostile, flood};

/// The behavior of a host.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The host has the pages `/page/0` and on. `/to/N` redirects to page N of the next host, and all other paths are
    /// missing except for sitemaps: `/part/N.xml` lists page N, `/index/N.xml` the first N of these, and
    /// `/away/H/N.xml` redirects to `/part/N.xml` of host H.
    pub pages: usize,
    /// The duration of each page.
    pub latency: Duration,
    /// One of so many pages takes this time instead.
    pub long: Option<(usize, Duration)>,
    /// Its robots.txt; without one, 404.
    pub robots: Option<Robots>,
    /// The number of requests for pages and parts of sitemaps that are first refused, with 429 and this `Retry-After`
    /// in seconds.
    pub refuses: Option<(usize, u64)>,
    /// The hostile behavior in place of its pages, if any; then it has a page at every other path.
    pub hostile: Option<Hostile>,
}

/// The response of a host to a request for its robots.txt.
#[derive(Clone, Debug)]
pub enum Robots {
    /// This text.
    Text(String),
    /// This status for the first requests, as many as the number says, then a file that allows everything.
    Fails(u16, usize),
    /// A redirect to the robots.txt of the host with this number.
    At(usize),
    /// No response, while the connection stays open.
    Never,
}

/// A received request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The number of the host.
    pub host: usize,
    /// The requested path.
    pub path: String,
    /// The time since the start of the web.
    pub at: Duration,
}

/// The running web. Ends when dropped.
pub struct ManyHosts {
    hosts: Vec<Arc<Host>>,
    log: Arc<Log>,
    _serving: JoinSet<()>,
}

struct Host {
    number: usize,
    origin: String,
    /// The origins of all hosts.
    origins: Arc<[String]>,
    plan: Plan,
    robots_asked: AtomicUsize,
    pages_asked: AtomicUsize,
    under_way: AtomicUsize,
    most_under_way: AtomicUsize,
    log: Arc<Log>,
}

struct Log {
    start: Instant,
    arrivals: Mutex<Vec<Arrival>>,
    count: watch::Sender<usize>,
}

impl ManyHosts {
    /// Starts one host for each plan.
    ///
    /// # Errors
    /// Fails if an address or a port is unavailable.
    pub async fn serve(plans: &[Plan]) -> io::Result<Self> {
        let log =
            Arc::new(Log { start: Instant::now(), arrivals: Mutex::default(), count: watch::Sender::new(0) });
        let mut listeners = Vec::with_capacity(plans.len());
        for number in 0..plans.len() {
            listeners.push(TcpListener::bind((address(number), 0)).await?);
        }
        let origins: Arc<[String]> = listeners
            .iter()
            .map(|listener| Ok(format!("http://{}", listener.local_addr()?)))
            .collect::<io::Result<_>>()?;
        let mut serving = JoinSet::new();
        let mut hosts = Vec::with_capacity(plans.len());
        for ((number, plan), listener) in plans.iter().enumerate().zip(listeners) {
            let host = Arc::new(Host {
                number,
                origin: origins[number].clone(),
                origins: Arc::clone(&origins),
                plan: plan.clone(),
                robots_asked: AtomicUsize::new(0),
                pages_asked: AtomicUsize::new(0),
                under_way: AtomicUsize::new(0),
                most_under_way: AtomicUsize::new(0),
                log: Arc::clone(&log),
            });
            let router = Router::new().fallback(answer).with_state(Arc::clone(&host));
            if plan.hostile == Some(Hostile::InterimAnswers) {
                serving.spawn(flood(listener));
            } else {
                serving.spawn(async move {
                    let _ = axum::serve(listener, router).await;
                });
            }
            hosts.push(host);
        }
        Ok(Self { hosts, log, _serving: serving })
    }

    /// Returns the URL of a path of a host: `http://127.1.0.1:port/path`.
    pub fn url(&self, host: usize, path: &str) -> String {
        format!("{}{path}", self.hosts[host].origin)
    }

    /// Returns the name of a host, without its port.
    pub fn host(&self, host: usize) -> String {
        address(host).to_string()
    }

    /// Returns every page of every host: the first of each, the second of each, and so on.
    pub fn pages(&self) -> Vec<String> {
        let most = self.hosts.iter().map(|host| host.plan.pages).max().unwrap_or_default();
        let of =
            |page| self.hosts.iter().filter(move |host| page < host.plan.pages).map(move |host| (host, page));
        (0..most).flat_map(of).map(|(host, page)| format!("{}/page/{page}", host.origin)).collect()
    }

    /// Returns the requests received so far, in order.
    pub fn log(&self) -> Vec<Arrival> {
        self.log.arrivals.lock().clone()
    }

    /// The highest number of simultaneous requests for pages of a host.
    pub fn most_under_way(&self, host: usize) -> usize {
        self.hosts[host].most_under_way.load(Ordering::Relaxed)
    }

    /// Waits until a host has received `count` requests.
    pub async fn asked_of(&self, host: usize, count: usize) {
        let is_there = |_: &usize| {
            self.log.arrivals.lock().iter().filter(|arrival| arrival.host == host).count() >= count
        };
        // The sender lives as long as the web.
        let _ = self.log.count.subscribe().wait_for(is_there).await;
    }

    /// Waits until `count` requests have arrived.
    pub async fn asked_for(&self, count: usize) {
        // The sender lives as long as the web.
        let _ = self.log.count.subscribe().wait_for(|asked| *asked >= count).await;
    }
}

/// Returns a loopback address that other tests do not use.
fn address(number: usize) -> Ipv4Addr {
    let [high, low] = u16::try_from(number + 1).expect("a few thousand hosts").to_be_bytes();
    Ipv4Addr::new(127, 1, high, low)
}

async fn answer(State(host): State<Arc<Host>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    {
        let mut arrivals = host.log.arrivals.lock();
        arrivals.push(Arrival { host: host.number, path: path.clone(), at: host.log.start.elapsed() });
        host.log.count.send_replace(arrivals.len());
    }
    if path == "/robots.txt" {
        return host.robots().await;
    }
    let number = |before: &str| path.strip_prefix(before).and_then(|number| number.parse::<usize>().ok());
    if let Some(page) = number("/to/") {
        let next = (host.number + 1) % host.origins.len();
        return redirect(&host.origins[next], &format!("/page/{page}"));
    }
    if let Some(sitemap) = path.strip_suffix(".xml") {
        return host.sitemap(sitemap).unwrap_or_else(|| StatusCode::NOT_FOUND.into_response());
    }
    match number("/page/") {
        Some(page) if page < host.plan.pages => host.page(page).await,
        _ if host.plan.hostile.is_some() => Html("<!doctype html><title>Deep</title>").into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn redirect(origin: &str, path: &str) -> Response {
    (StatusCode::FOUND, [(header::LOCATION, format!("{origin}{path}"))]).into_response()
}

impl Host {
    async fn robots(&self) -> Response {
        let asked = self.robots_asked.fetch_add(1, Ordering::Relaxed);
        match &self.plan.robots {
            None => StatusCode::NOT_FOUND.into_response(),
            Some(Robots::Never) => pending().await,
            Some(Robots::At(host)) => redirect(&self.origins[*host], "/robots.txt"),
            Some(Robots::Text(text)) => text.clone().into_response(),
            Some(Robots::Fails(status, times)) if asked < *times => {
                StatusCode::from_u16(*status).unwrap_or(StatusCode::IM_A_TEAPOT).into_response()
            }
            Some(Robots::Fails(..)) => "User-agent: *\nAllow: /\n".into_response(),
        }
    }

    /// Returns the response to a request that the host refuses.
    fn refusal(&self) -> Option<Response> {
        let asked = self.pages_asked.fetch_add(1, Ordering::Relaxed);
        let (_, after) = self.plan.refuses.filter(|(times, _)| asked < *times)?;
        Some((StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, after.to_string())]).into_response())
    }

    /// Returns a sitemap by its path without the extension.
    fn sitemap(&self, path: &str) -> Option<Response> {
        let mut parts = path.split('/').skip(1);
        let (kind, number, page) = (parts.next()?, parts.next()?.parse::<usize>().ok()?, parts.next());
        let origin = &self.origin;
        Some(match (kind, page) {
            ("part", None) => self.refusal().unwrap_or_else(|| {
                format!("<urlset><url><loc>{origin}/page/{number}</loc></url></urlset>").into_response()
            }),
            ("index", None) => {
                let part = |part| format!("<sitemap><loc>{origin}/part/{part}.xml</loc></sitemap>");
                let parts: String = (0..number).map(part).collect();
                format!("<sitemapindex>{parts}</sitemapindex>").into_response()
            }
            ("away", Some(page)) => redirect(self.origins.get(number)?, &format!("/part/{page}.xml")),
            _ => return None,
        })
    }

    async fn page(&self, page: usize) -> Response {
        if let Some(refusal) = self.refusal() {
            return refusal;
        }
        let under_way = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_under_way.fetch_max(under_way, Ordering::Relaxed);
        let latency = match (self.plan.hostile, self.plan.long) {
            (Some(hostile), _) => hostile.latency(),
            (None, Some((each, long))) if page % each == each - 1 => long,
            (None, _) => self.plan.latency,
        };
        if !latency.is_zero() {
            sleep(latency).await;
        }
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        if let Some(hostile) = self.plan.hostile {
            return Html(hostile.page(self.number, page)).into_response();
        }
        Html(format!("<!doctype html><html lang=\"en\"><title>Page {page}</title></html>\n")).into_response()
    }
}

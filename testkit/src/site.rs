//! A small site on this machine that logs its requests.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// A running site: `/sitemap.xml`, pages from `/page/0` on, `/broken`, which always fails, `/late`, which is not found
/// the first time, and `/poison`, which never answers. Ends with the test's runtime.
pub struct Site {
    /// `http://127.0.0.1:port`
    pub origin: String,
    shared: Arc<Shared>,
}

struct Shared {
    origin: String,
    pages: AtomicUsize,
    asked: Mutex<HashMap<String, usize>>,
    /// Number of page requests so far.
    count: watch::Sender<usize>,
    /// Number of page requests that are answered; further ones wait until it rises.
    open: watch::Sender<usize>,
}

impl Site {
    /// Serves a site of `pages` pages.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn serve(pages: usize) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let origin = format!("http://{}", listener.local_addr().expect("it is bound"));
        let shared = Arc::new(Shared {
            origin: origin.clone(),
            pages: AtomicUsize::new(pages),
            asked: Mutex::default(),
            count: watch::Sender::new(0),
            open: watch::Sender::new(usize::MAX),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { origin, shared }
    }

    /// Returns the URL of page `number`.
    pub fn page(&self, number: usize) -> String {
        format!("{}/page/{number}", self.origin)
    }

    /// Changes the number of pages to `pages`.
    pub fn grow(&self, pages: usize) {
        self.shared.pages.store(pages, Ordering::Relaxed);
    }

    /// Delays the answer to every page request after the first `count`.
    pub fn hold_after(&self, count: usize) {
        self.shared.open.send_replace(count);
    }

    /// Answers everything, including the delayed requests.
    pub fn answer_all(&self) {
        self.hold_after(usize::MAX);
    }

    /// Waits until there have been `count` page requests.
    pub async fn asked_for(&self, count: usize) {
        let mut counted = self.shared.count.subscribe();
        // The sender lives as long as the site.
        let _ = counted.wait_for(|asked| *asked >= count).await;
    }

    /// Waits until there have been `count` requests for `path`.
    pub async fn asked_for_path(&self, path: &str, count: usize) {
        let mut counted = self.shared.count.subscribe();
        let asked = |_: &usize| self.log().get(path).is_some_and(|asked| *asked >= count);
        // The sender lives as long as the site.
        let _ = counted.wait_for(asked).await;
    }

    /// Returns the number of requests by path.
    pub fn log(&self) -> HashMap<String, usize> {
        self.shared.asked.lock().clone()
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let times = shared.ask(&path);
    if path == "/sitemap.xml" {
        return ([(header::CONTENT_TYPE, "application/xml")], shared.sitemap()).into_response();
    }
    if path == "/robots.txt" {
        return StatusCode::NOT_FOUND.into_response();
    }
    let mut place = 0;
    shared.count.send_modify(|count| {
        *count += 1;
        place = *count;
    });
    let _ = shared.open.subscribe().wait_for(|open| *open >= place).await;
    if path == "/poison" {
        return std::future::pending().await;
    }
    if path == "/broken" {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    if path == "/late" && times > 1 {
        return Html(page(0)).into_response();
    }
    match path.strip_prefix("/page/").and_then(|number| number.parse::<usize>().ok()) {
        Some(number) if number < shared.pages.load(Ordering::Relaxed) => Html(page(number)).into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

impl Shared {
    /// Logs a request. Returns the number of requests for this path.
    fn ask(&self, path: &str) -> usize {
        let mut asked = self.asked.lock();
        let times = asked.entry(path.to_owned()).or_default();
        *times += 1;
        *times
    }

    fn sitemap(&self) -> String {
        let entry = |number| format!("<url><loc>{}/page/{number}</loc></url>\n", self.origin);
        let entries: String = (0..self.pages.load(Ordering::Relaxed)).map(entry).collect();
        format!("<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n{entries}</urlset>\n")
    }
}

fn page(number: usize) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><title>Page {number}</title><a href=\"/page/0\">back</a></html>\n"
    )
}

//! A small site on this machine whose pages change, and which answers conditional requests (RFC 9110 13).

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use tokio::net::TcpListener;

/// A page of the site.
#[derive(Clone, Debug, Default)]
pub struct ChangingPage {
    /// The status of every answer, if it is not a success.
    pub status: Option<u16>,
    /// The body, HTML.
    pub body: String,
    /// The entity tag.
    pub etag: Option<String>,
    /// The date of the last change, as in `Last-Modified`.
    pub modified: Option<String>,
    /// The date of the last change, as in the sitemap.
    pub lastmod: Option<String>,
    /// The target of its redirect, if it redirects.
    pub location: Option<String>,
    /// The `Cache-Control` header.
    pub cache_control: Option<String>,
}

impl ChangingPage {
    /// Returns a page with this title.
    pub fn titled(title: &str) -> Self {
        Self { body: format!("<!doctype html><html><title>{title}</title>"), ..Self::default() }
    }

    /// Returns a page with this title, and an entity tag made from it.
    pub fn tagged(title: &str) -> Self {
        Self { etag: Some(format!("\"{title}\"")), ..Self::titled(title) }
    }
}

/// A running site: `/sitemap.xml`, which lists the pages whose paths begin with `/p`, and the pages. Ends with the
/// test's runtime.
pub struct ChangingSite {
    /// `http://127.0.0.1:port`
    pub origin: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    origin: String,
    pages: Mutex<BTreeMap<String, ChangingPage>>,
    log: Mutex<Vec<Asked>>,
}

/// A request for a page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// The path.
    pub path: String,
    /// The status of the answer.
    pub status: u16,
    /// Whether the request was conditional.
    pub with_condition: bool,
}

impl ChangingSite {
    /// Serves an empty site.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn serve() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let origin = format!("http://{}", listener.local_addr().expect("it is bound"));
        let shared = Arc::new(Shared { origin: origin.clone(), ..Shared::default() });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { origin, shared }
    }

    /// Puts a page at `path`.
    pub fn put(&self, path: &str, page: ChangingPage) {
        self.shared.pages.lock().insert(path.to_owned(), page);
    }

    /// Removes the page at `path`.
    pub fn remove(&self, path: &str) {
        self.shared.pages.lock().remove(path);
    }

    /// Returns the requests since the last call, except those for the sitemap and robots.txt, sorted by path.
    pub fn take_log(&self) -> Vec<Asked> {
        let mut log = std::mem::take(&mut *self.shared.log.lock());
        log.sort();
        log
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    match path.as_str() {
        "/sitemap.xml" => {
            return ([(header::CONTENT_TYPE, "application/xml")], shared.sitemap()).into_response();
        }
        "/robots.txt" => return StatusCode::NOT_FOUND.into_response(),
        _ => {}
    }
    let headers = request.headers();
    let with_condition =
        headers.contains_key(header::IF_NONE_MATCH) || headers.contains_key(header::IF_MODIFIED_SINCE);
    let response = match shared.pages.lock().get(&path) {
        Some(page) => page.answer(headers),
        None => StatusCode::NOT_FOUND.into_response(),
    };
    let status = response.status().as_u16();
    shared.log.lock().push(Asked { path, status, with_condition });
    response
}

impl ChangingPage {
    fn answer(&self, headers: &HeaderMap) -> Response {
        let asked = |name| headers.get(name).and_then(|value| value.to_str().ok());
        // The date counts only without a tag (RFC 9110 13.1.3).
        let is_unchanged = match asked(header::IF_NONE_MATCH) {
            Some(tag) => self.etag.as_deref() == Some(tag),
            None => {
                asked(header::IF_MODIFIED_SINCE).is_some_and(|date| self.modified.as_deref() == Some(date))
            }
        };
        let status = match (&self.location, is_unchanged) {
            (Some(_), _) => StatusCode::FOUND,
            (None, true) => StatusCode::NOT_MODIFIED,
            (None, false) => StatusCode::OK,
        };
        let status = self.status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(status);
        let fields = [
            (header::ETAG, &self.etag),
            (header::LAST_MODIFIED, &self.modified),
            (header::LOCATION, &self.location),
            (header::CACHE_CONTROL, &self.cache_control),
        ];
        let mut response = Response::builder().status(status).header(header::CONTENT_TYPE, "text/html");
        for (name, value) in fields {
            response = match value {
                Some(value) => response.header(name, value),
                None => response,
            };
        }
        let body = if status == StatusCode::OK { Body::from(self.body.clone()) } else { Body::empty() };
        response.body(body).expect("the fields of a page are fields")
    }
}

impl Shared {
    fn sitemap(&self) -> String {
        let entry = |(path, page): (&String, &ChangingPage)| {
            let lastmod =
                page.lastmod.iter().map(|date| format!("<lastmod>{date}</lastmod>")).collect::<String>();
            format!("<url><loc>{}{path}</loc>{lastmod}</url>\n", self.origin)
        };
        let pages = self.pages.lock();
        let entries: String = pages.iter().filter(|(path, _)| path.starts_with("/p")).map(entry).collect();
        format!("<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n{entries}</urlset>\n")
    }
}

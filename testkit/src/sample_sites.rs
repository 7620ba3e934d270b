//! Four small sites of the kinds that the example spiders are for, with a log of their requests.

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The kind of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A documentation site: a start page and a guide, whose pages link to each other.
    Docs,
    /// A shop: a list over several pages, and products with JSON-LD.
    Shop,
    /// A news site: `robots.txt`, a sitemap with `lastmod`, articles with an `ETag`.
    News,
    /// A JSON API that names its next page, for clients with the token `secret`.
    Api,
}

/// Number of pages of the guide.
pub const GUIDES: usize = 12;
/// Number of pages of the shop's list.
pub const LISTS: usize = 4;
/// Number of products on one of them.
pub const PRODUCTS_EACH: usize = 5;
/// Number of articles.
pub const ARTICLES: usize = 8;
/// Number of books, in pages of 100.
pub const BOOKS: usize = 250;

/// A running site. Ends with the test's runtime.
pub struct SampleSites {
    /// `http://127.0.0.1:port`
    pub origin: String,
    shared: Arc<Shared>,
}

struct Shared {
    kind: Kind,
    origin: String,
    log: Mutex<Vec<Asked>>,
    /// The article that was rewritten, if one was.
    news: Mutex<Option<usize>>,
}

/// One request and the status of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The path and query.
    pub path: String,
    /// The status.
    pub status: u16,
}

impl SampleSites {
    /// Serves a site of this kind.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn serve(kind: Kind) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let origin = format!("http://{}", listener.local_addr().expect("it is bound"));
        let (log, news) = Default::default();
        let shared = Arc::new(Shared { kind, origin: origin.clone(), log, news });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { origin, shared }
    }

    /// Returns the spider of an example, with this site in place of the host that it names.
    pub fn spider(&self, example: &str) -> String {
        let name = match self.shared.kind {
            Kind::Docs => "docs.example",
            Kind::Shop => "shop.example",
            Kind::News => "news.example",
            Kind::Api => "api.example",
        };
        example.replace(&format!("https://{name}"), &self.origin).replace(name, "127.0.0.1")
    }

    /// Rewrites an article.
    pub fn rewrite(&self, article: usize) {
        *self.shared.news.lock() = Some(article);
    }

    /// Returns the requests since the last call.
    pub fn log(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.shared.log.lock())
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let uri = request.uri();
    let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let response = match shared.kind {
        Kind::Docs => docs(&path),
        Kind::Shop => shop(&path),
        Kind::News => shared.news(&path, request.headers()),
        Kind::Api => api(uri.path(), uri.query().unwrap_or_default(), request.headers()),
    };
    let status = response.status().as_u16();
    shared.log.lock().push(Asked { path, status });
    response
}

fn missing() -> Response {
    StatusCode::NOT_FOUND.into_response()
}

/// Every page has links that lead out of the guide, to its print version and into a search.
fn docs(path: &str) -> Response {
    let guide = path.strip_prefix("/guide/").and_then(|number| number.parse::<usize>().ok());
    let (title, body) = match (path, guide) {
        ("/", _) => {
            ("Start".to_owned(), "<p>Welcome to the guide, which says all that there is to say.".to_owned())
        }
        (_, Some(number)) if number < GUIDES => {
            let next = (number + 1) % GUIDES;
            let body = format!(
                "<h2>What</h2><p>Chapter {number} of the guide.<h2>How</h2><pre><code>run {number}</code></pre>\
                 <p>On to <a href=/guide/{next}#how>chapter {next}</a>, <a href=/guide/{number}/print.html>print</a>, \
                 <a href='/guide/{number}?highlight=run'>run</a>.<time datetime='2026-01-{:02}'>lately</time>",
                number + 1
            );
            (format!("Chapter {number}"), body)
        }
        _ => return missing(),
    };
    let nav: String =
        (0..GUIDES).step_by(4).map(|number| format!("<li><a href=/guide/{number}>{number}</a>")).collect();
    Html(format!(
        "<!doctype html><title>{title}</title><nav><ul>{nav}</ul></nav>\
         <p class=breadcrumbs><a href=/>Home</a> / <a href=/>Guide</a></p>\
         <main><h1>{title}</h1>{body}</main><footer><a href=/imprint>Imprint</a></footer>"
    ))
    .into_response()
}

fn shop(path: &str) -> Response {
    let list = match path {
        "/products" => Some(1),
        _ => path.strip_prefix("/products?page=").and_then(|page| page.parse().ok()),
    };
    let product = path.strip_prefix("/product/").and_then(|number| number.parse::<usize>().ok());
    match (list, product) {
        (Some(page), _) if (1..=LISTS).contains(&page) => Html(shelf(page)).into_response(),
        (_, Some(number)) if number < LISTS * PRODUCTS_EACH => Html(ware(number)).into_response(),
        _ => missing(),
    }
}

fn shelf(page: usize) -> String {
    let first = (page - 1) * PRODUCTS_EACH;
    let products: String = (first..first + PRODUCTS_EACH)
        .map(|number| {
            format!("<li><a href='/product/{number}'>Product {number}</a> <a href='/cart?add={number}'>+</a>")
        })
        .collect();
    format!(
        "<!doctype html><title>Products, page {page}</title><ul>{products}</ul>\
         <a href='/products?page={}'>next</a> <a href='/products?page=1&sort=price'>by price</a>",
        page + 1
    )
}

/// Returns a product. Every third has no price.
fn ware(number: usize) -> String {
    let data = json!({
        "@context": "https://schema.org",
        "@graph": [{"@type": "WebPage"}, {"@type": ["Product"], "name": format!("Product {number}"), "sku": format!("P-{number}")}],
    });
    let price = if number.is_multiple_of(3) {
        String::new()
    } else {
        format!("<p class=price data-currency=CHF>CHF 1,{number:03}.50</p>")
    };
    format!(
        "<!doctype html><title>Product {number}</title><script type='application/ld+json'>{data}</script>\
         <article class=product><h1>Product {number}</h1>{price}<p class=stock>yes</p>\
         <img src='/img/{number}-a.png'><img src='/img/{number}-b.png'>\
         <ul><li class=offer><b>Ann</b> <span class=amount>12.50</span><li class=offer><b>Ben</b> <span class=amount>13</span></ul>\
         </article><table class=specifications><tr><th>Size</th><th>Weight</th></tr><tr><td>{number}</td><td>{number} kg</td></tr></table>"
    )
}

impl Shared {
    fn news(&self, path: &str, headers: &HeaderMap) -> Response {
        let rewritten = *self.news.lock();
        let article = path.strip_prefix("/news/").and_then(|number| number.parse::<usize>().ok());
        match (path, article) {
            ("/robots.txt", _) => {
                format!("User-agent: *\nSitemap: {}/sitemap.xml\n", self.origin).into_response()
            }
            ("/sitemap.xml", _) => {
                ([(header::CONTENT_TYPE, "application/xml")], self.sitemap(rewritten)).into_response()
            }
            (_, Some(number)) if number < ARTICLES => story(
                number,
                rewritten == Some(number),
                headers.get(header::IF_NONE_MATCH).and_then(|tag| tag.to_str().ok()),
            ),
            _ => missing(),
        }
    }

    /// Returns the sitemap. Half of the entries have a date of the last change: long ago, or in the future.
    fn sitemap(&self, rewritten: Option<usize>) -> String {
        let entry = |number: usize| {
            let date = if rewritten == Some(number) { "2999-01-01" } else { "2020-01-01" };
            let lastmod =
                if number.is_multiple_of(2) { format!("<lastmod>{date}</lastmod>") } else { String::new() };
            format!("<url><loc>{}/news/{number}</loc>{lastmod}</url>", self.origin)
        };
        let entries: String = (0..ARTICLES).map(entry).collect();
        format!("<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{entries}</urlset>")
    }
}

fn story(number: usize, is_rewritten: bool, known: Option<&str>) -> Response {
    let version = if is_rewritten { "second" } else { "first" };
    let tag = format!("\"{number}-{version}\"");
    if known == Some(&tag) {
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response();
    }
    let data = json!({
        "@type": "NewsArticle",
        "headline": format!("Story {number}, {version} version"),
        "author": {"@type": "Person", "name": "A. Writer"},
        "datePublished": "2026-03-01T12:00:00+01:00",
    });
    let page = format!(
        "<!doctype html><title>Story {number}</title><meta property='og:description' content='In short {number}'>\
         <meta property='og:image' content='/img/{number}.jpg'>\
         <script type='application/ld+json'>{data}</script><article><p>This is the {version} version of story {number}, \
         which is long enough to be read as the main text of its page by whoever looks for that.</p></article>"
    );
    ([(header::ETAG, tag)], Html(page)).into_response()
}

fn api(path: &str, query: &str, headers: &HeaderMap) -> Response {
    if headers.get(header::AUTHORIZATION).is_none_or(|token| token != "secret") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    if path != "/v1/books" {
        return missing();
    }
    let first =
        query.split('&').find_map(|pair| pair.strip_prefix("after=")).and_then(|after| after.parse().ok());
    let first: usize = first.unwrap_or(0);
    let last = (first + 100).min(BOOKS);
    let books: Vec<Value> = (first..last).map(book).collect();
    let next = (last < BOOKS).then(|| format!("/v1/books?limit=100&after={last}"));
    let body = json!({"books": books, "links": {"next": next}});
    ([(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

fn book(number: usize) -> Value {
    json!({
        "id": number,
        "title": format!("Book {number}"),
        "authors": [{"name": "One"}, {"name": "Two"}],
        "published": "2001-02-03",
        "price": {"amount": 9.5, "currency": "EUR"},
    })
}

//! A shop on this machine: lists of several pages that lead to products and these to variants, a JSON API with
//! cursors, a form, and lists that never end.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::gate::Gate;

/// The categories.
pub const CATEGORIES: [&str; 3] = ["Books", "Music", "Toys & Games"];
/// Number of pages of each category, of products on each page, and of variants of each product.
pub const PAGES: usize = 3;
/// Number of products on each page of a list.
pub const PER_PAGE: usize = 4;
/// Number of variants of each product.
pub const VARIANTS: usize = 2;

/// The spider of the shop, from its lists over products to variants.
pub const SPIDER: &str = include_str!("shop.toml");

/// Returns the items of a kind by their title.
fn by_title<'a>(items: &[&'a Value], kind: &str) -> HashMap<&'a str, &'a Value> {
    let all: Vec<&Value> = items.iter().copied().filter(|item| item["item"] == kind).collect();
    let by_title: HashMap<_, _> =
        all.iter().map(|item| (item["fields"]["title"].as_str().unwrap_or_default(), *item)).collect();
    assert_eq!(by_title.len(), all.len(), "each once");
    by_title
}

/// Checks that these are the items of a crawl of the whole shop with [`SPIDER`]. Items of one id are one item,
/// delivered again.
///
/// # Panics
/// If they are not.
pub fn check(origin: &str, items: &[Value]) {
    let by_id: HashMap<&str, &Value> =
        items.iter().map(|item| (item["id"].as_str().unwrap_or_default(), item)).collect();
    let items: Vec<&Value> = by_id.into_values().collect();
    let products = by_title(&items, "product");
    assert_eq!(products.len(), CATEGORIES.len() * PAGES * PER_PAGE);
    for (at, category) in CATEGORIES.iter().enumerate() {
        for id in at * PAGES * PER_PAGE..(at + 1) * PAGES * PER_PAGE {
            let product = products[&*format!("Product {id}")];
            let expected = json!({
                "title": format!("Product {id}"), "price": id as f64 + 0.5, "category": category,
                "teaser": format!("Teaser {id}"),
            });
            assert_eq!(product["fields"], expected);
            assert_eq!(product["path"], json!(["category", "product"]));
            let referrer = product["referrer"].as_str().unwrap_or_default();
            assert!(referrer.starts_with(&format!("{origin}/c/{at}")), "{referrer}");
        }
    }
    let variants = by_title(&items, "variant");
    assert_eq!(variants.len(), products.len() * VARIANTS);
    let variant = variants["Variant 1 of 30"];
    let expected = json!({"title": "Variant 1 of 30", "category": "Toys & Games", "teaser": "Teaser 30", "of": "Product 30"});
    assert_eq!(variant["fields"], expected);
    assert_eq!(variant["path"], json!(["category", "product", "variant"]));
    assert_eq!(variant["referrer"], format!("{origin}/p/30"));
}

/// A running shop. Ends with the test's runtime.
pub struct ShopSite {
    /// `http://127.0.0.1:port`
    pub origin: String,
    /// Holds requests back.
    pub gate: Arc<Gate>,
    shared: Arc<Shared>,
}

struct Shared {
    asked: Mutex<HashMap<String, usize>>,
    gate: Arc<Gate>,
}

impl ShopSite {
    /// Serves a shop on a port of its own.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn serve() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let origin = format!("http://{}", listener.local_addr().expect("it is bound"));
        let gate = Arc::<Gate>::default();
        let shared = Arc::new(Shared { asked: Mutex::default(), gate: Arc::clone(&gate) });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { origin, gate, shared }
    }

    /// Returns the number of requests for each path with query, and body if there is one.
    pub fn asked(&self) -> HashMap<String, usize> {
        let mut asked = self.shared.asked.lock().clone();
        asked.remove("GET /robots.txt");
        asked
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body = String::from_utf8_lossy(&body).into_owned();
    let pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let query: HashMap<String, String> =
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    if uri.path() != "/robots.txt" {
        shared.gate.pass().await;
    }
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let name = format!("{method} {path} {body}").trim().to_owned();
    *shared.asked.lock().entry(name).or_default() += 1;
    let parts: Vec<&str> = uri.path().split('/').skip(1).collect();
    let number = |text: &str| text.parse::<usize>().unwrap_or_default();
    match parts.as_slice() {
        [""] => home(),
        ["c", category] => list(number(category), number(query.get("page").map_or("1", String::as_str))),
        ["offset", category] => {
            list(number(category), number(query.get("start").map_or("0", String::as_str)) / PER_PAGE + 1)
        }
        ["linked"] => linked(number(query.get("page").map_or("1", String::as_str))),
        ["p", id] => product(number(id)),
        ["p", id, "v", variant] => variant_of(number(id), number(variant)),
        ["api"] => api(query.get("cursor").map(String::as_str)),
        ["api", "search"] if method == Method::POST => match serde_json::from_str::<Value>(&body) {
            Ok(asked) => search(&asked),
            Err(_) => StatusCode::BAD_REQUEST.into_response(),
        },
        ["endless"] => endless(number(query.get("cursor").map_or("0", String::as_str))),
        ["again"] => cursors(query.get("cursor").map_or("a", String::as_str)),
        ["same"] => Html("<ul><li><a href='/p/1'>1</a></ul>").into_response(),
        ["search"] => search_form(),
        ["find"] => find(&method, &headers, query, &body),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn page(title: &str, content: &str) -> Response {
    let around = format!("<title>{title}</title><nav><a href='/'>Home</a></nav>{content}");
    Html(around).into_response()
}

fn home() -> Response {
    let links: Vec<String> =
        CATEGORIES.iter().enumerate().map(|(at, name)| format!("<a href='/c/{at}'>{name}</a>")).collect();
    page("Shop", &format!("<div class='categories'>{}</div>", links.join(" ")))
}

/// The products of page `number` of a category.
fn products(category: usize, number: usize) -> Vec<usize> {
    match number {
        1..=PAGES => {
            let first = (category * PAGES + number - 1) * PER_PAGE;
            (first..first + PER_PAGE).collect()
        }
        _ => Vec::new(),
    }
}

fn list(category: usize, number: usize) -> Response {
    let Some(name) = CATEGORIES.get(category) else { return StatusCode::NOT_FOUND.into_response() };
    let products: Vec<String> = products(category, number)
        .iter()
        .map(|id| {
            format!(
                "<article><a href='/p/{id}'>Product {id}</a> <a href='/p/{id}#reviews'>reviews</a> \
                 <b class='teaser'>Teaser {id}</b></article>"
            )
        })
        .collect();
    let next = match number < PAGES {
        true => format!("<a class='next' href='/c/{category}?page={}'>next</a>", number + 1),
        false => String::new(),
    };
    page(name, &format!("<h1>{name}</h1>{}{next}", products.join("")))
}

/// A list whose next page is in the header.
fn linked(number: usize) -> Response {
    let mut response = list(0, number);
    if number < PAGES
        && let Ok(value) =
            format!("</linked?page={}>; rel=\"next\", </linked>; rel=\"first\"", number + 1).parse()
    {
        response.headers_mut().insert(header::LINK, value);
    }
    response
}

/// A product, whose page links to its category and to the next product.
fn product(id: usize) -> Response {
    let variants: String =
        (0..VARIANTS).map(|n| format!("<a class='variant' href='/p/{id}/v/{n}'>variant {n}</a>")).collect();
    let category = id / (PAGES * PER_PAGE);
    let all = CATEGORIES.len() * PAGES * PER_PAGE;
    let next = (id + 1) % all;
    page(
        &format!("Product {id}"),
        &format!(
            "<h1>Product {id}</h1><p class='price'>{id}.50 €</p>{variants}<a class='up' href='/c/{category}'>up</a>\
             <a class='related' href='/p/{next}'>related</a>"
        ),
    )
}

fn variant_of(id: usize, variant: usize) -> Response {
    page("Variant", &format!("<h1>Variant {variant} of {id}</h1><a class='up' href='/p/{id}'>up</a>"))
}

fn json(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

fn part(from: usize) -> Value {
    let entries: Vec<Value> =
        (from..from + PER_PAGE).map(|id| json!({"id": id, "url": format!("/p/{id}")})).collect();
    let next = from + PER_PAGE;
    json!({"entries": entries, "next": if next < 3 * PER_PAGE { json!(format!("c{next}")) } else { Value::Null }})
}

fn place(cursor: Option<&str>) -> usize {
    cursor.and_then(|cursor| cursor.strip_prefix('c')?.parse().ok()).unwrap_or_default()
}

/// Three pages by cursor.
fn api(cursor: Option<&str>) -> Response {
    json(&part(place(cursor)))
}

/// Three pages by cursor for a term, by POST.
fn search(asked: &Value) -> Response {
    let mut found = part(place(asked["page"]["cursor"].as_str()));
    found["term"] = asked["q"].clone();
    json(&found)
}

/// Each page names another one, for ever.
fn endless(number: usize) -> Response {
    json(&json!({"entries": [{"id": number}], "next": number + 1}))
}

/// Cursors that lead to each other.
fn cursors(cursor: &str) -> Response {
    let next = if cursor == "a" { "b" } else { "a" };
    json(&json!({"entries": [{"id": cursor}], "next": next}))
}

fn search_form() -> Response {
    page(
        "Search",
        "<form id='search' action='/find' method='post'><input type='hidden' name='token' value='t&amp;1'>\
         <input name='q' value='old'><input type='checkbox' name='stock' checked><input type='checkbox' name='used'>\
         <select name='sort'><option value='a'>A<option value='b' selected>B</select><textarea name='note'>n</textarea>\
         <input type='submit' name='go' value='Go'><input type='submit' name='other' value='x'></form>",
    )
}

/// Echoes what a form was sent with.
fn find(method: &Method, headers: &HeaderMap, query: HashMap<String, String>, body: &str) -> Response {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    json(&json!({"method": method.as_str(), "type": kind, "query": query, "body": body}))
}

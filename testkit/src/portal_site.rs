//! A portal on this machine behind a log-in: a form with a token, sessions that lapse after some requests or some time,
//! a JSON API with bearer tokens, and a log of who logged in when.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::gate::Gate;

/// The number of orders on each page of the list, and of pages.
pub const PER_PAGE: usize = 10;
/// Number of pages of the list.
pub const PAGES: usize = 20;
/// The account.
pub const USER: &str = "ann";
/// Its password, which nothing but the portal's own log-in may be told.
pub const PASSWORD: &str = "cor&rect horse";

/// The spider of the portal, from its list to its orders; the origin is still to be written in place of `ORIGIN`.
pub const SPIDER: &str = include_str!("portal.toml");

/// Returns the spider of a portal.
pub fn spider(origin: &str) -> String {
    SPIDER.replace("ORIGIN", origin)
}

/// Checks that these are the items of a crawl of the whole portal. Items of one id are one item, delivered again.
///
/// # Panics
/// If they are not.
pub fn check(items: &[Value]) {
    let by_id: HashMap<&str, &Value> =
        items.iter().map(|item| (item["id"].as_str().unwrap_or_default(), item)).collect();
    let mut titles: Vec<&str> = by_id.values().filter_map(|item| item["fields"]["title"].as_str()).collect();
    titles.sort_unstable();
    let mut expected: Vec<String> = (0..PAGES * PER_PAGE).map(|number| format!("Order {number}")).collect();
    expected.sort_unstable();
    assert_eq!(titles, expected);
}

/// A running portal. Ends with the test's runtime.
pub struct PortalSite {
    /// `http://127.0.0.1:port`
    pub origin: String,
    /// Holds pages of sessions back.
    pub gate: Arc<Gate>,
    shared: Arc<Shared>,
}

/// The portal's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortalLog {
    /// Number of log-ins that succeeded.
    pub logins: usize,
    /// Number of those before which the last session had not lapsed.
    pub needless: usize,
    /// Number of those with another password, or another token of the form.
    pub refused: usize,
    /// Number of attempts that the portal answered 500.
    pub failed: usize,
    /// Number of requests for the page with the form.
    pub forms: usize,
    /// Number of times that each page was shown to somebody who had logged in.
    pub shown: HashMap<String, usize>,
    /// Number of requests that came without a session, or with one that had lapsed.
    pub sent_away: usize,
    /// Number of visitors without a cookie at the wall of `/wall/…`.
    pub strangers: usize,
    /// Number of requests of a session that lacked the cookie that the answer before them had set.
    pub forgetful: usize,
}

struct Shared {
    /// Number of requests after which a session lapses.
    per_session: usize,
    /// The time after which it lapses.
    lifetime: Duration,
    state: Mutex<Portal>,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Portal {
    log: PortalLog,
    /// The session, with the number of its requests, and when it began: a person has one at a time.
    session: Option<(usize, usize, Instant)>,
    is_broken: bool,
    is_forgetful: bool,
    is_inline: bool,
    form_target: Option<String>,
}

impl PortalSite {
    /// Serves a portal whose sessions lapse after this many requests, or this time.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn serve(per_session: usize, lifetime: Duration) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let origin = format!("http://{}", listener.local_addr().expect("it is bound"));
        let gate = Arc::<Gate>::default();
        let shared =
            Arc::new(Shared { per_session, lifetime, state: Mutex::default(), gate: Arc::clone(&gate) });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { origin, gate, shared }
    }

    /// Returns the portal's log.
    pub fn log(&self) -> PortalLog {
        self.shared.state.lock().log.clone()
    }

    /// Ends the session, as if it had lapsed.
    pub fn end_session(&self) {
        self.shared.state.lock().session = None;
    }

    /// Answers each attempt to log in with 500, or no longer.
    pub fn break_login(&self, is_broken: bool) {
        self.shared.state.lock().is_broken = is_broken;
    }

    /// Forgets each session as soon as somebody has logged in.
    pub fn forget_sessions(&self) {
        self.shared.state.lock().is_forgetful = true;
    }

    /// Shows the form in place of a page, with the status 200, to those without a session.
    pub fn show_form_inline(&self) {
        self.shared.state.lock().is_inline = true;
    }

    /// Has the form sent to another URL.
    pub fn send_form_to(&self, url: &str) {
        self.shared.state.lock().form_target = Some(url.to_owned());
    }
}

impl Shared {
    /// Whether a request is part of the session, which it uses up.
    fn admits(&self, key: &str) -> bool {
        let mut portal = self.state.lock();
        let is_admitted = match &mut portal.session {
            Some((number, requests, begun)) if *key == format!("s{number}") => {
                *requests += 1;
                *requests <= self.per_session && begun.elapsed() < self.lifetime
            }
            _ => false,
        };
        if !is_admitted {
            portal.log.sent_away += 1;
        }
        is_admitted
    }

    /// Begins a session. Returns its key.
    fn begin(&self) -> String {
        let mut portal = self.state.lock();
        let is_needless = portal.session.is_some_and(|(_, requests, begun)| {
            requests <= self.per_session && begun.elapsed() < self.lifetime
        });
        portal.log.logins += 1;
        portal.log.needless += usize::from(is_needless);
        let number = portal.log.logins;
        portal.session = Some((number, 0, Instant::now())).filter(|_| !portal.is_forgetful);
        format!("s{number}")
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let form: HashMap<String, String> = url::form_urlencoded::parse(&body).into_owned().collect();
    let text = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    let cookies = headers.get(header::COOKIE).and_then(|field| field.to_str().ok()).unwrap_or_default();
    let cookies: HashMap<&str, &str> =
        cookies.split("; ").filter_map(|cookie| cookie.split_once('=')).collect();
    let cookie = |name: &str| cookies.get(name).copied().unwrap_or_default();
    match (method, uri.path()) {
        (Method::GET, "/login") => {
            let mut portal = shared.state.lock();
            portal.log.forms += 1;
            let token = format!("t{}&", portal.log.forms);
            (
                [(header::SET_COOKIE, format!("csrf={token}; Path=/login"))],
                form_page(&token, portal.form_target.as_deref()),
            )
                .into_response()
        }
        (Method::POST, "/login" | "/token") if shared.state.lock().is_broken => {
            shared.state.lock().log.failed += 1;
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
        (Method::POST, "/login") => {
            let is_right = text("user") == USER && text("password") == PASSWORD;
            if !is_right || text("csrf").is_empty() || text("csrf") != cookie("csrf") {
                shared.state.lock().log.refused += 1;
                return Redirect::to("/login?wrong").into_response();
            }
            let session = format!("sid={}; Path=/; HttpOnly", shared.begin());
            ([(header::SET_COOKIE, session)], Redirect::to("/account")).into_response()
        }
        (Method::POST, "/token") => {
            if text("client_id") != USER || text("client_secret") != PASSWORD {
                shared.state.lock().log.refused += 1;
                return StatusCode::UNAUTHORIZED.into_response();
            }
            let token = json!({"access_token": shared.begin(), "expires_in": 3600});
            ([(header::CONTENT_TYPE, "application/json")], token.to_string()).into_response()
        }
        (Method::GET, "/robots.txt") => StatusCode::NOT_FOUND.into_response(),
        (Method::GET, path) if path.starts_with("/wall/") => match cookie("visitor") {
            "" => {
                shared.state.lock().log.strangers += 1;
                ([(header::SET_COOKIE, "visitor=1; Path=/wall")], Redirect::to(path)).into_response()
            }
            _ => Html(format!("<h1>Behind {path}</h1>")).into_response(),
        },
        (Method::GET, path) => {
            let bearer = headers.get(header::AUTHORIZATION).and_then(|field| field.to_str().ok());
            let bearer = bearer.and_then(|field| field.strip_prefix("Bearer "));
            let is_api = path.starts_with("/api/");
            let key = if is_api { bearer.unwrap_or_default() } else { cookie("sid") };
            page(&shared, path, uri.query().unwrap_or_default(), key, cookie("seen")).await
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn form_page(token: &str, target: Option<&str>) -> Html<String> {
    let target = target.unwrap_or("/login");
    Html(format!(
        "<form id='login' method='post' action='{target}'><input type='hidden' name='csrf' value='{}'>\
         <input name='user'><input name='password' type='password'><button>Sign in</button></form>",
        token.replace('&', "&amp;")
    ))
}

/// A page for those who have logged in.
async fn page(shared: &Shared, path: &str, query: &str, key: &str, seen: &str) -> Response {
    let is_api = path.starts_with("/api/");
    if path != "/account" {
        shared.gate.pass().await;
    }
    if path == "/of-another-account" || !shared.admits(key) {
        return match is_api {
            true => StatusCode::UNAUTHORIZED.into_response(),
            false if shared.state.lock().is_inline => form_page("old", None).into_response(),
            false => Redirect::to(&format!("/login?next={path}")).into_response(),
        };
    }
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let number = |text: &str| text.parse::<usize>().unwrap_or_default();
    let first = number(query.strip_prefix("page=").unwrap_or("0"));
    let orders = first * PER_PAGE..(first + 1) * PER_PAGE;
    let shown = match parts.as_slice() {
        ["account"] => {
            Html("<h1>Account</h1><a class='logout' href='/logout'>Log out</a>".to_owned()).into_response()
        }
        ["orders"] => {
            let links: String =
                orders.map(|id| format!("<a class='order' href='/order/{id}'>{id}</a> ")).collect();
            let next = (first + 1 < PAGES)
                .then(|| format!("<a class='next' href='/orders?page={}'>next</a>", first + 1));
            Html(format!("{links}{}", next.unwrap_or_default())).into_response()
        }
        ["order", id] => Html(format!("<h1>Order {}</h1>", number(id))).into_response(),
        ["api", "orders"] => {
            let next = (first + 1 < PAGES).then(|| format!("/api/orders?page={}", first + 1));
            let orders: Vec<String> = orders.map(|id| format!("Order {id}")).collect();
            let page = json!({"orders": orders, "next": next}).to_string();
            ([(header::CONTENT_TYPE, "application/json")], page).into_response()
        }
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let mut portal = shared.state.lock();
    let name = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
    *portal.log.shown.entry(name).or_default() += 1;
    // The page of the account sets it first, and every other one is to come with it.
    portal.log.forgetful += usize::from(path != "/account" && !is_api && seen.is_empty());
    ([(header::SET_COOKIE, format!("seen={key}; Path=/; Max-Age=600"))], shown).into_response()
}

//! The log-in: exchanges a token of the settings for a session.

use std::sync::Arc;
use std::time::Instant;

use askama::Template;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use tracing::{info, warn};
use trawl_api::{Peer, is_cross_site, names_this_machine};

use crate::Console;
use crate::failure::Failure;
use crate::form::{self, Asked};
use crate::page::{self, Answer, Page, html, to};
use crate::sessions::{cookie, names, no_cookie};

pub(crate) fn routes() -> Router<Arc<Console>> {
    let log_out = post(log_out);
    Router::new().route("/log-in", get(ask).post(log_in)).route("/log-out", log_out).layer(form::limit())
}

#[derive(Template)]
#[template(path = "log_in.html")]
struct LogInPage {
    page: Page,
    next: String,
    /// The reason why the last attempt was rejected.
    wrong: Option<String>,
    /// Whether a token may be sent over this connection.
    is_private: bool,
}

/// The page to show after the log-in.
#[derive(Deserialize)]
struct Next {
    next: Option<String>,
}

#[derive(Deserialize)]
struct LogIn {
    #[serde(default)]
    token: String,
    next: Option<String>,
}

async fn ask(
    State(console): State<Arc<Console>>,
    Asked(Next { next }): Asked<Next>,
    request: Request,
) -> Response {
    let next = place(next);
    match console.visitor(request.headers(), Peer::of(request.extensions())) {
        Ok(Some(_)) => to(&next),
        Ok(None) => of_failure(show(next, None, request.headers())),
        Err(failure) => page::of_failure(&failure, None),
    }
}

async fn log_in(State(console): State<Arc<Console>>, request: Request) -> Response {
    of_failure(try_log_in(&console, request).await)
}

async fn try_log_in(console: &Console, request: Request) -> Answer {
    let headers = request.headers().clone();
    let peer = Peer::of(request.extensions());
    if is_cross_site(&headers) {
        return Err(Failure::forged("a page of another site has sent this"));
    }
    let LogIn { token, next } = form::read(request).await?;
    let next = place(next);
    if !is_private(&headers) {
        return show(next, None, &headers);
    }
    match console.access.log_in(peer, token.trim()).await {
        Ok(identity) => {
            info!(caller = identity.name(), %peer, "logged in");
            for name in names(&headers) {
                console.sessions.end(name);
            }
            let name = console.sessions.begin(identity, Instant::now());
            Ok(with_cookie(to(&next), &cookie(&name, is_tls(&headers))))
        }
        Err(problem) => {
            warn!(%peer, problem = problem.detail(), "refused a log-in");
            let shown = show(next, Some(problem.detail().to_owned()), &headers)?;
            Ok(page::answered(&problem.into(), shown))
        }
    }
}

/// Needs no token of the session: all that a forged request could do is end it, and browsers send no cookie
/// with requests from other sites.
async fn log_out(State(console): State<Arc<Console>>, headers: HeaderMap) -> Response {
    if is_cross_site(&headers) {
        return page::of_failure(&Failure::forged("a page of another site has sent this"), None);
    }
    for name in names(&headers) {
        console.sessions.end(name);
    }
    with_cookie(to("/log-in"), &no_cookie(is_tls(&headers)))
}

fn show(next: String, wrong: Option<String>, headers: &HeaderMap) -> Answer {
    let is_private = is_private(headers);
    let shown = html(&LogInPage { page: Page::of_nobody("Log in"), next, wrong, is_private })?;
    let status = if is_private { StatusCode::OK } else { StatusCode::FORBIDDEN };
    Ok((status, shown).into_response())
}

fn of_failure(answer: Answer) -> Response {
    answer.unwrap_or_else(|failure| page::of_failure(&failure, None))
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// Whether nobody on the way can read a token: the request stays on this machine, or came over TLS to the
/// proxy in front of the console. A browser that lies about it exposes only its own token.
fn is_private(headers: &HeaderMap) -> bool {
    names_this_machine(headers) || is_tls(headers)
}

fn is_tls(headers: &HeaderMap) -> bool {
    headers.get("x-forwarded-proto").is_some_and(|scheme| scheme.as_bytes().eq_ignore_ascii_case(b"https"))
}

/// Returns the page to show after the log-in, which must be on the console and not on another site.
fn place(next: Option<String>) -> String {
    let is_here = |next: &String| {
        next.starts_with('/')
            && !next.starts_with("//")
            && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
    };
    next.filter(is_here).unwrap_or_else(|| "/".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_log_in_a_browser_stays_here() {
        let kept = |next: &str| place(Some(next.to_owned())) == next;
        assert!(kept("/") && kept("/crawls?status=running"));
        for elsewhere in
            ["//evil.example", "https://evil.example", "/\\evil.example", "", "/a\r\nb", "/\u{e4}"]
        {
            assert!(!kept(elsewhere), "{elsewhere:?}");
        }
    }
}

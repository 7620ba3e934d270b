//! A small site on this machine that echoes requests.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A running site. `/to/<status>/<url>` redirects to that URL or path with that status; `/fails/<times>` answers 500
/// that many times first; `/robots.txt` forbids `/private`; every other path answers with a JSON object of `method`,
/// `path`, `headers` and `body`. Ends with the test's runtime.
pub struct EchoSite {
    /// `http://127.0.0.1:port`
    pub origin: String,
    asked: Asked,
}

/// The requests so far, in order.
type Asked = Arc<Mutex<Vec<Value>>>;

impl EchoSite {
    /// Serves a site on a port of its own.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn serve() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let origin = format!("http://{}", listener.local_addr().expect("it is bound"));
        let asked = Asked::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&asked));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { origin, asked }
    }

    /// Returns the requests to a path, in order.
    pub fn asked(&self, path: &str) -> Vec<Value> {
        let asked = self.asked.lock();
        asked.iter().filter(|sent| sent["path"] == path).cloned().collect()
    }
}

async fn answer(
    State(asked): State<Asked>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let headers: HashMap<&str, &str> =
        headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?))).collect();
    let path = uri.path();
    let sent = json!({
        "method": method.as_str(), "path": path, "headers": headers, "body": String::from_utf8_lossy(&body),
    });
    let before = {
        let mut asked = asked.lock();
        let before = asked.iter().filter(|other| other["path"] == path).count();
        asked.push(sent.clone());
        before
    };
    if let Some((status, to)) = path.strip_prefix("/to/").and_then(|rest| rest.split_once('/')) {
        let status = status.parse().unwrap_or(StatusCode::BAD_REQUEST);
        let to = if to.starts_with("http") { to.to_owned() } else { format!("/{to}") };
        return (status, [(header::LOCATION, to)]).into_response();
    }
    if path == "/robots.txt" {
        return "User-agent: *\nDisallow: /private\n".into_response();
    }
    match path.strip_prefix("/fails/").and_then(|times| times.parse().ok()) {
        Some(times) if before < times => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        _ => ([(header::CONTENT_TYPE, "application/json")], sent.to_string()).into_response(),
    }
}

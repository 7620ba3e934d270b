//! A site that gives an attacker's responses, and counts the requests.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use futures::stream;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Returns the response for a path with its query.
pub(crate) type Answers = Box<dyn Fn(&str) -> Response + Send + Sync>;

/// A running server, stopped when dropped.
pub(crate) struct Server {
    pub(crate) origin: String,
    asked: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let router = Router::new().fallback(answer).with_state((Arc::new(answers), Arc::clone(&asked)));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { origin, asked, task }
    }

    /// Returns the number of requests received.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    State((answers, asked)): State<(Arc<Answers>, Arc<AtomicUsize>)>,
    request: Request,
) -> Response {
    asked.fetch_add(1, Ordering::Relaxed);
    answers(request.uri().path_and_query().map_or("/", |path| path.as_str()))
}

/// A success with this body.
pub(crate) fn body(bytes: impl Into<Body>) -> Response {
    Response::new(bytes.into())
}

/// Adds a header to `response`.
pub(crate) fn with(mut response: Response, name: &'static str, value: &str) -> Response {
    response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
    response
}

/// A redirect to `location`.
pub(crate) fn redirect(location: &str) -> Response {
    let mut response = with(body(""), "location", location);
    *response.status_mut() = axum::http::StatusCode::FOUND;
    response
}

/// A response of `start` followed by `again` without end, with a pause before each.
pub(crate) fn endless(start: impl Into<Bytes>, again: impl Into<Bytes>, pause: Duration) -> Response {
    let again = again.into();
    let parts = stream::unfold(Some(start.into()), move |start| {
        let again = again.clone();
        async move {
            if let Some(start) = start {
                return Some((Ok::<_, Infallible>(start), None));
            }
            tokio::time::sleep(pause).await;
            Some((Ok(again), None))
        }
    });
    body(Body::from_stream(parts))
}

//! Asking the API, in this process and without a connection, as whoever looks at a page.

use axum::body::{Body, to_bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, Request, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tower::ServiceExt;
use url::{Position, Url};

use crate::Console;
use crate::failure::Failure;
use crate::guard::Visitor;

/// A request to the API.
pub(crate) struct Call {
    method: Method,
    url: Url,
    body: Option<String>,
    idempotency_key: Option<String>,
}

impl Call {
    /// To look at `/api/v1`, and below it what these segments name.
    pub(crate) fn get(segments: &[&str]) -> Self {
        let mut url = Url::parse("http://localhost/api/v1").unwrap_or_else(|_| unreachable!());
        if let Ok(mut path) = url.path_segments_mut() {
            path.extend(segments);
        }
        Self { method: Method::GET, url, body: None, idempotency_key: None }
    }

    /// To change something there.
    pub(crate) fn post(segments: &[&str]) -> Self {
        Self { method: Method::POST, ..Self::get(segments) }
    }

    /// With a parameter.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.url.query_pairs_mut().append_pair(name, value);
        self
    }

    /// With a parameter, if there is one.
    pub(crate) fn with_any(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// With a body.
    pub(crate) fn body(self, body: &impl Serialize) -> Self {
        // Names, texts and numbers: they always serialise.
        Self { body: Some(serde_json::to_string(body).unwrap_or_default()), ..self }
    }

    /// So that asking twice asks once.
    pub(crate) fn once(self, key: &str) -> Self {
        Self { idempotency_key: Some(key.to_owned()), ..self }
    }

    fn request(self, visitor: &Visitor) -> Result<Request<Body>, axum::http::Error> {
        let mut request = Request::builder().method(self.method).uri(&self.url[Position::BeforePath..]);
        if self.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(key) = self.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        request.extension(visitor.identity.clone()).body(self.body.unwrap_or_default().into())
    }
}

impl Console {
    /// Asks the API. What it answers that is not a success is a failure, in its words.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, visitor: &Visitor, call: Call) -> Result<T, Failure> {
        let request = call.request(visitor).map_err(Failure::malformed)?;
        let Ok(response) = self.api.clone().oneshot(request).await;
        let status = response.status();
        let body = to_bytes(response.into_body(), usize::MAX).await.map_err(unreadable)?;
        match status.is_success() {
            true => serde_json::from_slice(&body).map_err(unreadable),
            false => Err(serde_json::from_slice(&body).unwrap_or_else(unreadable)),
        }
    }
}

fn unreadable(error: impl ToString) -> Failure {
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "The answer cannot be read", error)
}

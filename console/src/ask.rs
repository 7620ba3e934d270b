//! Calls of the API, within this process and without a connection, on behalf of the visitor.

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{Method, Request, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tower::ServiceExt;
use url::form_urlencoded;

use crate::failure::Failure;
use crate::visit::Visit;
use crate::visitor::Visitor;

/// The characters of a segment to escape: all that could end it, and dots, as two of them would lead up.
/// Paths of the API have hyphens.
const ESCAPED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// A request to the API.
pub(crate) struct Call {
    method: Method,
    path: String,
    query: String,
    body: Option<Sent>,
    idempotency_key: Option<String>,
}

/// The body of a request.
struct Sent {
    content_type: &'static str,
    bytes: Bytes,
}

impl Call {
    /// Returns a `GET` request for the path below `/api/v1` that these segments name. Each remains one
    /// segment, whatever it contains, even `..` or a slash.
    pub(crate) fn get(segments: &[&str]) -> Self {
        let segments = segments.iter().map(|segment| utf8_percent_encode(segment, &ESCAPED));
        let path = segments.fold("/api/v1".to_owned(), |path, segment| format!("{path}/{segment}"));
        Self { method: Method::GET, path, query: String::new(), body: None, idempotency_key: None }
    }

    /// Returns a `POST` request for this path.
    pub(crate) fn post(segments: &[&str]) -> Self {
        Self { method: Method::POST, ..Self::get(segments) }
    }

    /// Returns a `DELETE` request for this path.
    pub(crate) fn delete(segments: &[&str]) -> Self {
        Self { method: Method::DELETE, ..Self::get(segments) }
    }

    /// Adds a query parameter.
    pub(crate) fn with(self, name: &str, value: &str) -> Self {
        let query = form_urlencoded::Serializer::new(self.query).append_pair(name, value).finish();
        Self { query, ..self }
    }

    /// Adds a query parameter, if there is a value.
    pub(crate) fn with_any(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Sets a JSON body.
    pub(crate) fn body(self, body: &impl Serialize) -> Self {
        // Names, texts and numbers always serialise.
        let bytes = serde_json::to_vec(body).unwrap_or_default().into();
        Self { body: Some(Sent { content_type: "application/json", bytes }), ..self }
    }

    /// Sets a file as the body.
    pub(crate) fn file(self, bytes: Bytes) -> Self {
        Self { body: Some(Sent { content_type: "application/octet-stream", bytes }), ..self }
    }

    /// Sets a body of entries, one per line.
    pub(crate) fn lines(self, bytes: Bytes) -> Self {
        Self { body: Some(Sent { content_type: "application/x-ndjson", bytes }), ..self }
    }

    /// Sets an idempotency key, so that a repeated call has no further effect.
    pub(crate) fn once(self, key: &str) -> Self {
        Self { idempotency_key: Some(key.to_owned()), ..self }
    }

    /// The path and query.
    fn address(&self) -> String {
        if self.query.is_empty() { self.path.clone() } else { format!("{}?{}", self.path, self.query) }
    }

    fn request(self, visitor: &Visitor) -> Result<Request<Body>, axum::http::Error> {
        let mut request = Request::builder().uri(self.address()).method(self.method);
        if let Some(key) = self.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        let Sent { content_type, bytes } = match self.body {
            Some(sent) => sent,
            None => return request.extension(visitor.identity.clone()).body(Body::empty()),
        };
        request.header(CONTENT_TYPE, content_type).extension(visitor.identity.clone()).body(bytes.into())
    }
}

impl Visit {
    /// Calls the API. An unsuccessful response is a failure, with the API's text.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, call: Call) -> Result<T, Failure> {
        let shared = &self.console.shared;
        let answer = if call.method == Method::GET {
            let address = call.address();
            shared.get(&address, self.send(call)).await
        } else {
            let answer = self.send(call).await;
            shared.forget();
            answer
        };
        serde_json::from_slice(&answer?).map_err(unreadable)
    }

    async fn send(&self, call: Call) -> Result<Bytes, Failure> {
        let request = call.request(&self.visitor).map_err(Failure::malformed)?;
        let Ok(response) = self.console.api.clone().oneshot(request).await;
        let status = response.status();
        let retry_after =
            response.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse().ok());
        let body = to_bytes(response.into_body(), usize::MAX).await.map_err(unreadable)?;
        match status.is_success() {
            true => Ok(body),
            false => {
                let failure = serde_json::from_slice(&body).unwrap_or_else(unreadable);
                Err(Failure { retry_after, ..failure })
            }
        }
    }
}

fn unreadable(error: impl ToString) -> Failure {
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "The answer cannot be read", error)
}

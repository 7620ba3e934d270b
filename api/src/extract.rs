//! The parts of a request, read so that every error is one of the API's own problems.

use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use crate::problem::{Kind, Problem};

/// Maximum size of a body, in bytes.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// Maximum time for a body to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// A parameter in the path. An invalid one is reported as not found.
pub(crate) struct Segment<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Segment<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(Self(value)),
            Err(rejection) => Err(Problem::not_found(rejection.body_text())),
        }
    }
}

/// The query's parameters, of which unknown ones are refused.
pub(crate) struct Params<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(params)) => Ok(Self(params)),
            Err(rejection) => Err(Problem::malformed(rejection.body_text())),
        }
    }
}

/// A JSON body that arrived whole and in time.
pub(crate) struct Json<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if !media_type(request.headers()).eq_ignore_ascii_case("application/json") {
            let detail = "send `Content-Type: application/json`";
            return Err(Problem::new(Kind::UnsupportedMediaType, detail));
        }
        let body = body(request).await?;
        // Otherwise an array of a struct's members in their order would be accepted.
        if body.trim_ascii_start().first() != Some(&b'{') {
            return Err(Problem::malformed("body: send a JSON object"));
        }
        serde_json::from_slice(&body)
            .map(Self)
            .map_err(|error| Problem::malformed(format_args!("body: {error}")))
    }
}

/// Returns the declared media type of a body, without parameters; empty if there is none.
pub(crate) fn media_type(headers: &HeaderMap) -> &str {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim()
}

/// Reads a whole body, within the time limit.
pub(crate) async fn body(request: Request) -> Result<Bytes, Problem> {
    let body = Limited::new(request.into_body(), MAX_BODY_BYTES).collect();
    match tokio::time::timeout(BODY_TIMEOUT, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(Problem::new(Kind::TooLarge, format_args!("a body has at most {MAX_BODY_BYTES} bytes")))
        }
        Ok(Err(error)) => Err(Problem::malformed(format_args!("body: {error}"))),
        Err(_) => Err(Problem::new(Kind::BodyTimeout, "send the whole body at once")),
    }
}

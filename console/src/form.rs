//! What a form or an address says.

use std::time::Duration;

use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::{Form, RequestExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use subtle::ConstantTimeEq;

use crate::failure::Failure;
use crate::guard::Visitor;

/// The largest form, in bytes.
const LARGEST: usize = 1024 * 1024;
/// How long a form may take to arrive.
const LONGEST: Duration = Duration::from_secs(10);

/// The limit of all forms, for the router.
pub(crate) fn limit() -> DefaultBodyLimit {
    DefaultBodyLimit::max(LARGEST)
}

/// A form of a page that was shown to whoever sends it.
pub(crate) struct Posted<T>(pub(crate) T);

/// A form, with what it proves itself by.
#[derive(Deserialize)]
struct Proved<T> {
    #[serde(default)]
    csrf: String,
    #[serde(flatten)]
    rest: T,
}

impl<S: Send + Sync, T: DeserializeOwned + 'static> FromRequest<S> for Posted<T> {
    type Rejection = Failure;

    async fn from_request(mut request: Request, state: &S) -> Result<Self, Failure> {
        let visitor = request.extract_parts_with_state::<Visitor, S>(state).await?;
        let Proved { csrf, rest } = read(request).await?;
        match bool::from(csrf.as_bytes().ct_eq(visitor.csrf.as_bytes())) {
            true => Ok(Self(rest)),
            false => Err(Failure::forged("this form is not of a page of your session: load the page again")),
        }
    }
}

/// A form, whole and in time.
pub(crate) async fn read<T: DeserializeOwned + 'static>(request: Request) -> Result<T, Failure> {
    match tokio::time::timeout(LONGEST, request.extract::<Form<T>, _>()).await {
        Ok(Ok(Form(form))) => Ok(form),
        Ok(Err(rejection)) => {
            Err(Failure { status: rejection.status().as_u16(), ..Failure::malformed(rejection.body_text()) })
        }
        Err(_) => {
            Err(Failure::new(StatusCode::REQUEST_TIMEOUT, "The form did not come in time", "try again"))
        }
    }
}

/// What an address has behind its `?`.
pub(crate) struct Asked<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let query = Query::from_request_parts(parts, state).await;
        query.map(|Query(asked)| Self(asked)).map_err(|rejection| Failure::malformed(rejection.body_text()))
    }
}

/// What somebody wrote into a field; `None` if nothing.
pub(crate) fn written(field: &Option<String>) -> Option<&str> {
    field.as_deref().map(str::trim).filter(|text| !text.is_empty())
}

/// The same to be shown again: nothing as an empty text.
pub(crate) fn text(field: &Option<String>) -> &str {
    field.as_deref().unwrap_or_default()
}

//! Errors shown to people.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use trawl_api::Problem;

use crate::shown::Text;

/// The reason why a page cannot be shown or an action failed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Failure {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The kind of failure.
    pub(crate) title: String,
    /// The particular problem, and what to do about it.
    pub(crate) detail: Text,
    /// The number of seconds after which a retry makes sense, if known.
    #[serde(skip)]
    pub(crate) retry_after: Option<u64>,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, title: &str, detail: impl ToString) -> Self {
        let (title, detail) = (title.to_owned(), detail.to_string().into());
        Self { status: status.as_u16(), title, detail, retry_after: None }
    }

    /// Returns the failure of a form or an address that is not valid.
    pub(crate) fn malformed(detail: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "This cannot be understood", detail)
    }

    /// Returns the failure of a form that does not come from a page of the visitor's session.
    pub(crate) fn forged(detail: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "This is not allowed", detail)
    }

    /// Returns the failure for an unknown address.
    pub(crate) fn no_page() -> Self {
        Self::new(StatusCode::NOT_FOUND, "There is no such page", "look at the address for a mistake")
    }

    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let retry_after = problem.seconds_to_wait();
        Self { retry_after, ..Self::new(problem.status(), problem.title(), problem.detail()) }
    }
}

/// Carries the failure to `guard.rs`, which makes it a page: only there the visitor is known.
impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

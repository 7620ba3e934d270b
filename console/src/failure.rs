//! Errors, as people see them.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use trawl_api::Problem;

use crate::shown::Text;

/// Why a page cannot be shown, or something not be done.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Failure {
    /// The HTTP status.
    pub(crate) status: u16,
    /// What kind of failure it is.
    pub(crate) title: String,
    /// What is wrong in this case, and what to do.
    pub(crate) detail: Text,
    /// After how many seconds another try makes sense, if that is known.
    #[serde(skip)]
    pub(crate) retry_after: Option<u64>,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, title: &str, detail: impl ToString) -> Self {
        let (title, detail) = (title.to_owned(), detail.to_string().into());
        Self { status: status.as_u16(), title, detail, retry_after: None }
    }

    /// A form or an address that says what cannot be.
    pub(crate) fn malformed(detail: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "This cannot be understood", detail)
    }

    /// A form that is not of a page that was shown to whoever sends it.
    pub(crate) fn forged(detail: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "This is not allowed", detail)
    }

    /// There is nothing at this address.
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

/// Carries it to where it becomes a page (`guard.rs`): only there it is known for whom.
impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

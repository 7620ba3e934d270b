//! The visitor of a page.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use trawl_api::Identity;

use crate::failure::Failure;

/// The visitor who requested a page.
#[derive(Clone)]
pub(crate) struct Visitor {
    pub(crate) identity: Identity,
    /// The token that forms on the page must contain.
    pub(crate) csrf: String,
    /// Whether the visitor has logged in, and so can log out.
    pub(crate) has_session: bool,
}

impl Visitor {
    pub(crate) fn is_operator(&self) -> bool {
        self.identity.is_operator()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Visitor {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        parts.extensions.get().cloned().ok_or_else(ended)
    }
}

/// Returns the failure of a request without a visitor.
pub(crate) fn ended() -> Failure {
    let detail = "your session has ended, and nothing was done: log in, and try again";
    Failure::new(StatusCode::UNAUTHORIZED, "You are logged out", detail)
}

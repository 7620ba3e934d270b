//! A visitor's request for a page, and the means to answer it.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::Console;
use crate::failure::Failure;
use crate::visitor::Visitor;

/// A visitor's request for a page.
pub(crate) struct Visit {
    pub(crate) console: Arc<Console>,
    pub(crate) visitor: Visitor,
}

impl FromRequestParts<Arc<Console>> for Visit {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, console: &Arc<Console>) -> Result<Self, Failure> {
        let visitor = Visitor::from_request_parts(parts, console).await?;
        Ok(Self { console: Arc::clone(console), visitor })
    }
}

//! Addresses that are not pages: the API's, or unknown ones.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use tower::ServiceExt;
use trawl_api::Peer;

use crate::Console;
use crate::failure::Failure;
use crate::page;

/// Forwards requests for the API to it; for all others there is no page.
pub(crate) async fn answer(State(console): State<Arc<Console>>, request: Request) -> Response {
    let path = request.uri().path();
    // Scrapyd's endpoints are at the root.
    if path.starts_with("/api/") || path.ends_with(".json") || ["/healthz", "/metrics"].contains(&path) {
        let Ok(response) = console.api.clone().oneshot(request).await;
        return response;
    }
    match console.visitor(request.headers(), Peer::of(request.extensions())) {
        Ok(visitor) => page::of_failure(&Failure::no_page(), visitor),
        Err(failure) => page::of_failure(&failure, None),
    }
}

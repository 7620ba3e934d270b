//! The health check, and the document of the API.

use axum::Json;
use utoipa::openapi::OpenApi;

/// Whether the API is up
#[utoipa::path(
    get, path = "/healthz", tag = "meta",
    responses((status = 200, body = String, content_type = "text/plain"))
)]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// This document
#[utoipa::path(
    get, path = "/api/v1/openapi.json", tag = "meta",
    responses((status = 200, body = serde_json::Value))
)]
pub(crate) async fn openapi() -> Json<OpenApi> {
    Json(crate::document::document())
}

//! The health check.

/// Whether the API is up
#[utoipa::path(
    get, path = "/healthz", tag = "meta",
    responses((status = 200, body = String, content_type = "text/plain"))
)]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

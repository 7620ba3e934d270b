//! The style sheet and the script of all pages, which are part of the program.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse;
use axum::routing::get;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::Console;

const STYLE: &str = include_str!("../assets/console.css");
const SCRIPT: &str = include_str!("../assets/console.js");
const ICON: &str = include_str!("../assets/icon.svg");
/// They may be cached for a year: their addresses contain [`version`].
const KEPT: &str = "max-age=31536000, immutable";

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/console.css", get(async || asset("text/css; charset=utf-8", STYLE)))
        .route("/console.js", get(async || asset("text/javascript; charset=utf-8", SCRIPT)))
        .route("/console.svg", get(async || asset("image/svg+xml", ICON)))
}

fn asset(content_type: &'static str, text: &'static str) -> impl IntoResponse {
    ([(CONTENT_TYPE, content_type), (CACHE_CONTROL, KEPT)], text)
}

/// The suffix of their addresses, which differs after every change.
pub(crate) fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let digest = Sha256::new().chain_update(STYLE).chain_update(SCRIPT).chain_update(ICON).finalize();
        HEXLOWER.encode(&digest[..6])
    });
    &VERSION
}

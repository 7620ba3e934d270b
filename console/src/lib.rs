//! The console: web pages of a fleet, for people.
//!
//! It is a client of the HTTP API in the same process. A page sends the API the request that a program would
//! send (`ask.rs`), on behalf of the logged-in visitor, so roles, limits and permissions are all implemented
//! in the API. The console adds the log-in (`sessions.rs`, `guard.rs`) and HTML (`pages`, `templates`). Each
//! page works without a script; the only script updates pages while they are open.

mod address;
mod answers;
mod ask;
mod assets;
mod beside;
mod charts;
mod failure;
mod form;
mod guard;
mod headers;
mod log_in;
mod page;
mod pages;
mod recipe;
mod sessions;
mod shared;
mod shown;
mod visit;
mod visitor;

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn_with_state, map_response};
use tokio_util::sync::CancellationToken;
use trawl_api::{Access, Backend};

use crate::charts::Samples;
use crate::sessions::{Sessions, secret};
use crate::shared::Shared;

/// The shared state of the handlers.
struct Console {
    /// The API, which is called without a connection.
    api: Router,
    access: Arc<Access>,
    sessions: Sessions,
    /// The token that forms must contain if no log-in is needed.
    open_csrf: String,
    samples: Arc<Samples>,
    shared: Shared,
}

/// Returns the console over `backend`, with the API beside it, for the visitors that `access` admits. Must be
/// called in a runtime; background tasks end with `stop`.
pub fn router(backend: Backend, access: Access, stop: CancellationToken) -> Router {
    let access = Arc::new(access);
    let samples = Samples::start(Arc::clone(&backend.stats), stop.clone());
    let api = trawl_api::router(backend, Arc::clone(&access), stop);
    let console = Console {
        api,
        access,
        sessions: Sessions::default(),
        open_csrf: secret(),
        samples,
        shared: Shared::default(),
    };
    let console = Arc::new(console);
    let pages = pages::routes().route_layer(from_fn_with_state(Arc::clone(&console), guard::guard));
    let all = pages.merge(log_in::routes()).merge(assets::routes());
    all.fallback(beside::answer).layer(map_response(headers::add)).with_state(console)
}

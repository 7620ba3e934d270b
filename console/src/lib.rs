//! The console: web pages of a fleet, for people.
//!
//! It is a client of the HTTP API in the same process. A page asks the API what a program would ask (`ask.rs`), as whoever has logged
//! in, so that roles, limits and the rules of what may be done are the API's, each in its one place. What is added here is the log-in
//! (`sessions.rs`, `guard.rs`), and HTML (`pages`, `templates`). Each page works without a script; the one that there is
//! shows what has changed meanwhile.

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

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn_with_state, map_response};
use tokio_util::sync::CancellationToken;
use trawl_api::{Access, Backend};

use crate::charts::Samples;
use crate::sessions::{Sessions, secret};
use crate::shared::Shared;

/// What handlers share.
struct Console {
    /// The API, which is asked without a connection.
    api: Router,
    access: Arc<Access>,
    sessions: Sessions,
    /// What forms prove themselves by where nobody logs in.
    open_csrf: String,
    samples: Arc<Samples>,
    shared: Shared,
}

/// The console over `backend`, and the API beside it, for those whom `access` lets in. It must be called in a runtime; what it does in
/// the background ends with `stop`.
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

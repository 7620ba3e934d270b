//! The HTTP API: access to crawls, hosts, workers and dead letters for people and programs.
//!
//! [`router`] serves any engine over its ports, and its OpenAPI document is made from the same list of
//! handlers (`document.rs`). A request passes, in this order: the limits of a connection ([`serve`]),
//! authentication and authorisation (`access.rs`), a handler (`routes`). Every failure is a problem as in RFC
//! 9457 (`problem.rs`).

mod access;
mod backend;
mod cursor;
mod document;
mod extract;
mod given_url;
mod headers;
mod holders;
mod hook;
mod identity;
mod limits;
mod listing;
mod new_requests;
mod new_tasks;
mod peer;
mod permits;
mod problem;
mod proxies;
mod relay;
mod routes;
mod scrapyd;
mod serve;
mod spiders;
mod state;
mod threads;
mod tt;
mod view;
mod watch;

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use tokio_util::sync::CancellationToken;

pub use crate::access::{Access, Unprotected, is_cross_site, names_this_machine};
pub use crate::backend::{Backend, ForRunners, Tip, TryPage};
pub use crate::identity::Identity;
pub use crate::peer::Peer;
use crate::permits::Permits;
pub use crate::problem::Problem;
use crate::relay::Relay;
pub use crate::serve::serve;
use crate::state::Api;
use crate::watch::Watchers;

/// Returns the API's routes over `backend`, for the callers that `access` admits. Requests that wait for a
/// crawl end when `stop` is cancelled.
pub fn router(backend: Backend, access: Arc<Access>, stop: CancellationToken) -> Router {
    let relay = Relay::new(&backend, stop.clone());
    let watchers = Watchers::new(backend.clone(), stop);
    let readers = Permits::new(8, 2, "readings of items");
    let followers = Permits::new(32, 8, "readings of the log");
    let searchers = Permits::new(8, 2, "searches");
    // The examined texts are written by strangers, and keep a core busy.
    let examiners = Permits::new(2, 1, "examinations of spiders");
    let (hooks, metrics, timetable) = Default::default();
    let api = Arc::new(Api {
        backend,
        watchers,
        relay: Arc::clone(&relay),
        hooks,
        metrics,
        timetable,
        readers,
        followers,
        searchers,
        examiners,
    });
    let guarded = document::routes()
        .merge(scrapyd::routes())
        .fallback(problem::no_route)
        .method_not_allowed_fallback(problem::no_method)
        .layer(from_fn_with_state(access, access::guard));
    // Runners have keys of their own, and Git servers sign their calls.
    let unguarded = relay::routes(relay).merge(tt::routes(Arc::clone(&api)));
    let all = guarded.merge(hook::routes()).with_state(api).merge(unguarded);
    all.layer(from_fn(limits::in_time)).layer(map_response(headers::add))
}

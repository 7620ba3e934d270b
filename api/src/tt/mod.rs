//! The API of task_tracker, by which its drones work unchanged: machines that ask for the tasks of a project, run the
//! program `run` of its repository, and say what came of it.
//!
//! - A drone is a runner that the API has named, and that people approve for a project (`caller.rs`, `workers.rs`).
//! - Projects and workers have numbers (`numbers.rs`), and an answer is an object with `ok` (`answer.rs`).
//! - A task of a project is one of its spider (`tasks.rs`). While a drone has it, it is held by a worker of its own in the
//!   engine (`lease.rs`).

mod answer;
mod caller;
mod hook;
mod lease;
mod logs;
mod numbers;
mod outcome;
mod projects;
mod tasks;
mod workers;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::de::DeserializeOwned;
use trawl_common::ports::Runner;

use self::answer::Refused;
use self::caller::Callers;
use self::lease::Leases;
use crate::access::is_cross_site;
use crate::problem::{Kind, Problem};
use crate::state::Api;

/// The path of the API, which drones are given.
const PATH: &str = "/api/tt";

/// The state that the handlers share.
pub(crate) struct TaskTracker {
    api: Arc<Api>,
    callers: Callers,
    leases: Arc<Leases>,
}

impl TaskTracker {
    /// Returns the drone that calls, with the access that it has now.
    async fn caller(&self, head: &Parts) -> Result<Runner, Problem> {
        self.callers.known(&*self.api.backend.runners, head).await
    }

    /// Returns the drone that calls, and what it sends.
    async fn call<T: DeserializeOwned>(&self, request: Request) -> Result<(Runner, T), Problem> {
        let (head, body) = request.into_parts();
        let runner = self.caller(&head).await?;
        Ok((runner, answer::read(Request::from_parts(head, body)).await?))
    }
}

/// Returns the routes. Drones have secrets of their own, and Git servers sign their calls.
pub(crate) fn routes(api: Arc<Api>) -> Router {
    let at = |path: &str| format!("{PATH}{path}");
    let state = TaskTracker { api, callers: Callers::default(), leases: Arc::default() };
    Router::new()
        .route(&at("/worker/create"), post(workers::create))
        .route(&at("/worker/get/{worker}"), get(workers::show))
        .route(&at("/project/list"), get(projects::list))
        .route(&at("/project/get/{project}"), get(projects::show))
        .route(&at("/project/secret/{project}"), get(projects::secret))
        .route(&at("/project/request_access"), post(projects::request_access))
        .route(&at("/task/submit"), post(tasks::submit))
        .route(&at("/task/bulk_submit"), post(tasks::submit_all))
        .route(&at("/task/get/{project}"), get(tasks::assign))
        .route(&at("/task/release"), post(tasks::release))
        .route(&at("/log/{level}"), post(logs::append))
        .route(&at("/git/receivehook"), post(hook::hear))
        .layer(from_fn(same_site))
        .with_state(Arc::new(state))
}

/// Refuses requests that a browser sends for a page of another site.
async fn same_site(request: Request, next: Next) -> Response {
    match is_cross_site(request.headers()) {
        true => Refused::from(Problem::new(Kind::Forbidden, "only programs call here")).into_response(),
        false => next.run(request).await,
    }
}

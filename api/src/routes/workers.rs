//! Workers.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use trawl_common::names::WorkerId;
use utoipa::ToSchema;

use crate::Api;
use crate::extract::Segment;
use crate::problem::Problem;
use crate::view::Worker;

/// All live workers
#[derive(Serialize, ToSchema)]
pub(crate) struct Workers {
    workers: Vec<Worker>,
}

/// The live workers, each with any problem that keeps it from working
#[utoipa::path(
    get, path = "/api/v1/workers", tag = "workers", security(("token" = [])),
    responses((status = 200, body = Workers))
)]
pub(crate) async fn list_workers(State(api): State<Arc<Api>>) -> Result<Json<Workers>, Problem> {
    let workers = api.backend.stats.workers().await?;
    Ok(Json(Workers { workers: workers.into_iter().map(Worker::from).collect() }))
}

/// A worker that was asked to stop
#[derive(Serialize, ToSchema)]
pub(crate) struct Draining {
    worker: String,
    draining: bool,
}

/// Stops a worker: within seconds it takes no more work, finishes what it has started, and releases the rest
#[utoipa::path(
    post, path = "/api/v1/workers/{id}/drain", tag = "workers", security(("token" = [])),
    params(("id" = String, Path, description = "The worker's id")),
    responses((status = 200, body = Draining), (status = 404, description = "No such worker lives"))
)]
pub(crate) async fn drain_worker(
    State(api): State<Arc<Api>>,
    Segment(id): Segment<WorkerId>,
) -> Result<Json<Draining>, Problem> {
    match api.backend.control.drain(&id).await? {
        true => Ok(Json(Draining { worker: id.to_string(), draining: true })),
        false => {
            Err(Problem::not_found(format_args!("no worker {id} lives: GET /api/v1/workers lists them")))
        }
    }
}

//! Workers.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;
use crate::problem::Problem;
use crate::view::Worker;

/// All workers that live
#[derive(Serialize, ToSchema)]
pub(crate) struct Workers {
    workers: Vec<Worker>,
}

/// The workers that live, each with what keeps it from working
#[utoipa::path(
    get, path = "/api/v1/workers", tag = "workers", security(("token" = [])),
    responses((status = 200, body = Workers))
)]
pub(crate) async fn list_workers(State(api): State<Arc<Api>>) -> Result<Json<Workers>, Problem> {
    let workers = api.backend.stats.workers().await?;
    Ok(Json(Workers { workers: workers.into_iter().map(Worker::from).collect() }))
}

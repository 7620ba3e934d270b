//! Lanes: the number of waiting messages.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;
use crate::problem::Problem;
use crate::view::Lane;

/// All lanes, in the order in which a URL passes them
#[derive(Serialize, ToSchema)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
}

/// The number of messages waiting in each lane, and for how long
#[utoipa::path(
    get, path = "/api/v1/lanes", tag = "workers", security(("token" = [])),
    responses((status = 200, body = Lanes))
)]
pub(crate) async fn list_lanes(State(api): State<Arc<Api>>) -> Result<Json<Lanes>, Problem> {
    let lanes = api.backend.stats.lanes().await?;
    Ok(Json(Lanes { lanes: lanes.into_iter().map(Lane::from).collect() }))
}

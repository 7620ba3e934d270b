//! The log, to which drones and their programs write.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;
use trawl_common::logs::{LogEntry, LogLevel};
use trawl_common::names::WorkerId;
use trawl_common::time::UnixMs;

use super::TaskTracker;
use super::answer::Answer;
use crate::extract::Segment;
use crate::problem::Problem;

#[derive(Deserialize)]
struct NewEntry {
    scope: String,
    message: String,
    /// In seconds since 1970.
    timestamp: u64,
}

/// Appends an entry to the fleet's log, in the name of the drone.
pub(super) async fn append(
    State(tt): State<Arc<TaskTracker>>,
    Segment(level): Segment<LogLevel>,
    request: Request,
) -> Answer {
    let (runner, NewEntry { scope, message, timestamp }) = tt.call(request).await?;
    let worker: WorkerId = runner.name.as_str().parse().map_err(Problem::malformed)?;
    let entry = LogEntry::new(&worker, level, format!("{scope}: {message}"));
    let entry = LogEntry { time: UnixMs(timestamp.saturating_mul(1000)).min(UnixMs::now()), ..entry };
    tt.api.backend.logs.append(&[entry]).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

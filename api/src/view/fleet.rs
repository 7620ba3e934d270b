//! Workers and lanes.

use std::collections::BTreeMap;

use serde::Serialize;
use trawl_common::ports::{self, LaneState, WorkerState};
use utoipa::ToSchema;

use super::{LaneName, Time};

/// A worker that lives
#[derive(Serialize, ToSchema)]
pub(crate) struct Worker {
    worker: String,
    version: String,
    /// Whether it was asked to end
    draining: bool,
    /// URLs in its hands
    in_flight: u64,
    pages_per_second: f64,
    /// How long its requests took lately; absent if it made none
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    latency: Option<Latency>,
    /// `ok`, or what keeps it from working
    health: String,
    /// The tasks that its programs were doing at its last heartbeat, by their keys, and since when; 200 at most
    running: BTreeMap<String, Time>,
}

impl From<WorkerState> for Worker {
    fn from(state: WorkerState) -> Self {
        let latency = |ports::Latency { p50_ms, p95_ms }| Latency { p50_ms, p95_ms };
        Self {
            worker: state.worker.to_string(),
            version: state.version,
            draining: state.draining,
            in_flight: state.in_flight,
            pages_per_second: state.pages_per_second,
            latency: state.latency.map(latency),
            health: state.health,
            running: state.running.into_iter().map(|(task, since)| (task, since.into())).collect(),
        }
    }
}

/// How long requests to hosts took, bodies included, in milliseconds
#[derive(Serialize, ToSchema)]
struct Latency {
    /// Half of them took no longer
    p50_ms: u64,
    /// Nineteen of twenty took no longer
    p95_ms: u64,
}

/// What waits in a lane
#[derive(Serialize, ToSchema)]
pub(crate) struct Lane {
    #[schema(value_type = LaneName)]
    lane: ports::LaneName,
    /// How many messages wait; what workers hold is not among them
    messages: u64,
    /// How many connections take messages from it; nothing where that says nothing
    consumers: Option<u64>,
    /// For how many seconds the next message has waited, at most; nothing if none waits, or if it is not known
    oldest_seconds: Option<f64>,
}

impl From<LaneState> for Lane {
    fn from(LaneState { lane, messages, consumers, oldest }: LaneState) -> Self {
        Self { lane, messages, consumers, oldest_seconds: oldest.map(|oldest| oldest.as_secs_f64()) }
    }
}

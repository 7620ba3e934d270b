//! Workers and lanes.

use std::collections::BTreeMap;

use serde::Serialize;
use trawl_common::names::SpiderName;
use trawl_common::ports::{self, LaneState, WorkerState};
use utoipa::ToSchema;

use super::{LaneName, Time};

/// A live worker
#[derive(Serialize, ToSchema)]
pub(crate) struct Worker {
    worker: String,
    version: String,
    /// Whether it was asked to stop
    draining: bool,
    /// The number of URLs that it holds
    in_flight: u64,
    pages_per_second: f64,
    /// The latency of its recent requests; absent if it made none
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    latency: Option<Latency>,
    /// `ok`, or the problem that keeps it from working
    health: String,
    /// The spiders that it was lately asked to work for and cannot, and why
    lacks: BTreeMap<String, String>,
    /// The spiders that it works for by an older version of their files, and why the newer one cannot be used
    outdated: BTreeMap<String, String>,
    /// The keys of the tasks that its programs were running at its last heartbeat, and their start times; at
    /// most 200
    running: BTreeMap<String, Time>,
    /// The versions of the programs that it uses, by spider: where two workers differ, their files do; at most 200
    programs: BTreeMap<String, String>,
    /// Its browsers; absent if no page has needed one
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    browsers: Option<Browsers>,
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
            lacks: by_name(&state.lacks),
            outdated: by_name(&state.outdated),
            programs: by_name(&state.programs),
            browsers: state.browsers.map(Browsers::from),
            running: state.running.into_iter().map(|(task, since)| (task, since.into())).collect(),
        }
    }
}

fn by_name(spiders: &BTreeMap<SpiderName, impl ToString>) -> BTreeMap<String, String> {
    spiders.iter().map(|(spider, text)| (spider.to_string(), text.to_string())).collect()
}

/// The browsers of a worker
#[derive(Serialize, ToSchema)]
struct Browsers {
    /// The number of browsers that run
    running: u64,
    /// The number of pages that they have open
    pages: u64,
    /// The number of pages that wait for a place in one
    waiting: u64,
    /// Their memory in bytes, in which what processes share counts once
    memory: u64,
    /// The processor time that browsers have taken since the worker's start, in seconds
    cpu_seconds: u64,
    /// The number of pages rendered since then
    rendered: u64,
    /// The number of browsers that have died since then
    died: u64,
}

impl From<ports::Browsers> for Browsers {
    fn from(browsers: ports::Browsers) -> Self {
        let ports::Browsers { running, pages, waiting, memory, cpu_seconds, rendered, died } = browsers;
        Self { running, pages, waiting, memory, cpu_seconds, rendered, died }
    }
}

/// The latency of requests to hosts, bodies included, in milliseconds
#[derive(Serialize, ToSchema)]
struct Latency {
    /// The median
    p50_ms: u64,
    /// The 95th percentile
    p95_ms: u64,
}

/// The messages in a lane
#[derive(Serialize, ToSchema)]
pub(crate) struct Lane {
    #[schema(value_type = LaneName)]
    lane: ports::LaneName,
    /// The number of waiting messages, without those that workers hold
    messages: u64,
    /// The number of connections that consume it; null if that is not meaningful
    consumers: Option<u64>,
    /// The maximum time that the next message has waited, in seconds; null if none waits, or if unknown
    oldest_seconds: Option<f64>,
}

impl From<LaneState> for Lane {
    fn from(LaneState { lane, messages, consumers, oldest }: LaneState) -> Self {
        Self { lane, messages, consumers, oldest_seconds: oldest.map(|oldest| oldest.as_secs_f64()) }
    }
}

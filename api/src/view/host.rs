//! Hosts.

use serde::Serialize;
use trawl_common::ports::{HostBackoff, HostState};
use utoipa::ToSchema;

use super::Time;

/// A host, or a group of hosts that share a rate, and its schedule
#[derive(Serialize, ToSchema)]
pub(crate) struct Host {
    host: String,
    /// Milliseconds between two requests; 0 for no limit
    interval_ms: Option<f64>,
    /// The next free slot
    next: Time,
    /// The end of its waitlist
    line: Time,
    /// Requests in flight, if their number is limited
    under_way: u64,
    /// Requests allowed since the start of this minute of the clock: of workers, producers, and programs
    /// through the proxy
    requests_this_minute: u64,
    /// The recent latency of requests
    latency_ms: Option<u64>,
    backoff: Option<Backoff>,
    /// The time since which it is blocked
    blocked: Option<Time>,
}

/// A back-off of a host, with its cause and its end
#[derive(Serialize, ToSchema)]
pub(crate) struct Backoff {
    since: Time,
    until: Time,
    /// The HTTP status of the host's response; 0 for a redirect that counts as a ban by its spider's rules
    status: u16,
    /// The number of consecutive refusals without a stated time to wait
    strikes: u32,
}

impl From<HostState> for Host {
    fn from(state: HostState) -> Self {
        let backoff = |HostBackoff { since, until, status, strikes }| Backoff {
            since: since.into(),
            until: until.into(),
            status,
            strikes,
        };
        Self {
            host: state.key.to_string(),
            interval_ms: state.interval.map(|interval| interval.as_secs_f64() * 1000.0),
            next: state.next.into(),
            line: state.line.into(),
            under_way: state.under_way,
            requests_this_minute: state.requests,
            latency_ms: state.latency.map(|latency| latency.as_millis() as u64),
            backoff: state.backoff.map(backoff),
            blocked: state.blocked.map(Time::from),
        }
    }
}

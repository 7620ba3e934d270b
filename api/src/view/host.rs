//! Hosts.

use serde::Serialize;
use trawl_common::ports::{HostBackoff, HostState};
use utoipa::ToSchema;

use super::Time;

/// A host, or a group of hosts that share a rate, and how it is asked
#[derive(Serialize, ToSchema)]
pub(crate) struct Host {
    host: String,
    /// Milliseconds between two requests; 0 for no limit
    interval_ms: Option<f64>,
    /// The next free slot
    next: Time,
    /// The end of its waitlist
    line: Time,
    /// Requests under way, where their number is limited
    under_way: u64,
    /// Requests that were let go since this minute of the clock began: of workers, of producers, and of programs through the proxy
    requests_this_minute: u64,
    /// How long a request took lately
    latency_ms: Option<u64>,
    backoff: Option<Backoff>,
    /// Since when nobody may ask it
    blocked: Option<Time>,
}

/// Why and until when a host is left alone
#[derive(Serialize, ToSchema)]
pub(crate) struct Backoff {
    since: Time,
    until: Time,
    /// The HTTP status that it answered; 0 for a redirect that its spider takes for a ban
    status: u16,
    /// How many times in a row it did without saying for how long
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

//! Reports of a worker: its heartbeat, its log, the fleet's log, and the reason why no URL ends.

pub(crate) mod background;
pub(crate) mod host_log;
pub(crate) mod idle_reasons;
pub(crate) mod latencies;
pub(crate) mod lateness;
pub(crate) mod tally;
pub(crate) mod url_log;

//! `[metrics]`: where a process serves its metrics.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// `[metrics]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Where workers and producers serve `/metrics`, `/healthz` and `/readyz`; nowhere without it.
    pub listen: Option<SocketAddr>,
}

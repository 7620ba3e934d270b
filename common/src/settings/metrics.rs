//! `[metrics]`: the address at which a process serves its metrics.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// `[metrics]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// The address at which workers and producers serve `/metrics`, `/healthz` and `/readyz`; without it, they do
    /// not.
    pub listen: Option<SocketAddr>,
}

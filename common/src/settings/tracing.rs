//! `[tracing]`: where a process sends the traces of URLs.

use serde::{Deserialize, Serialize};

use super::ServerUrl;

/// `[tracing]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tracing {
    /// A collector that takes OTLP over HTTP; without it, nothing is traced.
    pub otlp: Option<ServerUrl>,
    /// The share of all URLs that is traced, from 0 to 1. It is the same for the whole fleet.
    pub sample: f64,
}

impl Default for Tracing {
    fn default() -> Self {
        Self { otlp: None, sample: 0.01 }
    }
}

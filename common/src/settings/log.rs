//! `[log]`: logging.

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use super::bytes::exact_bytes;

/// `[log]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// `error`, `warn`, `info`, `debug`, `trace`, or a filter by module.
    pub level: String,
    /// Text for people, or JSON.
    pub format: LogFormat,
    /// Whether workers log each URL: the start of its fetch, and the outcome.
    pub urls: bool,
    /// How many entries the fleet's log keeps, or that of a state file; with 0 nothing is written there.
    pub keep: usize,
    /// How many bytes of entries it keeps at most.
    #[serde(serialize_with = "exact_bytes")]
    pub keep_bytes: ByteSize,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            level: "info".to_owned(),
            format: LogFormat::Text,
            urls: false,
            keep: 10_000,
            keep_bytes: ByteSize::mb(16),
        }
    }
}

/// `log.format`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One readable line an event.
    Text,
    /// One JSON object an event.
    Json,
}

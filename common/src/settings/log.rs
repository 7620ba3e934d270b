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
    /// The format: text for people, or JSON.
    pub format: LogFormat,
    /// Whether workers log each URL: the start of its fetch, and the outcome.
    pub urls: bool,
    /// Number of entries that the log of the fleet or of a state file keeps; with 0 nothing is written there.
    pub keep: usize,
    /// Maximum size of the entries that it keeps.
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

//! `[producer]`: limits of one source, and of all sources together.

use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use super::bytes::exact_bytes;
use crate::duration;

/// `[producer]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Producer {
    /// Number of unfinished URLs of its spider's crawls at which the producer waits.
    pub max_backlog: NonZeroU64,
    /// Size of their records at which it waits as well.
    #[serde(serialize_with = "exact_bytes")]
    pub max_backlog_bytes: ByteSize,
    /// Maximum number of bytes read from one source, both as sent and unpacked.
    #[serde(serialize_with = "exact_bytes")]
    pub max_bytes: ByteSize,
    /// Maximum number of entries read from one source.
    pub max_urls: u64,
    /// Maximum time that the servers of one source may take to send it, and maximum time in all to wait for those
    /// that answer 429 or 503.
    #[serde(with = "duration")]
    pub timeout: Duration,
    /// The action of a run without `--crawl` while a crawl of its spider is running. By default a recrawl exits,
    /// and any other run starts a crawl.
    pub if_running: Option<IfRunning>,
}

/// `producer.if_running` and `--if-running`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum IfRunning {
    /// Do nothing, and exit with code 0.
    Exit,
    /// Add to the running crawl.
    Join,
    /// Start another crawl.
    Start,
}

impl IfRunning {
    const ALL: [Self; 3] = [Self::Exit, Self::Join, Self::Start];

    /// Returns the name in settings and flags.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl FromStr for IfRunning {
    type Err = UnknownIfRunning;
    fn from_str(text: &str) -> Result<Self, UnknownIfRunning> {
        Self::ALL.into_iter().find(|value| value.as_str() == text).ok_or(UnknownIfRunning)
    }
}

/// The error for a text that names no [`IfRunning`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write `exit`, `join` or `start`")]
pub struct UnknownIfRunning;

impl Default for Producer {
    /// Allows sources far above the 50,000 URLs in 50 MB of sitemaps.org, which real sites exceed.
    fn default() -> Self {
        Self {
            max_backlog: NonZeroU64::new(1_000_000).expect("it is not zero"),
            max_backlog_bytes: ByteSize::gb(1),
            max_bytes: ByteSize::gb(1),
            max_urls: 10_000_000,
            timeout: Duration::from_secs(600),
            if_running: None,
        }
    }
}

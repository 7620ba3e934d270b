//! `[producer]`: how much a source, and all sources together, may ask for.

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
    /// The producer waits while its spider's crawls have as many URLs without a final state.
    pub max_backlog: NonZeroU64,
    /// It waits as well while their records take as many bytes.
    #[serde(serialize_with = "exact_bytes")]
    pub max_backlog_bytes: ByteSize,
    /// The most bytes read of one source, as sent and unpacked.
    #[serde(serialize_with = "exact_bytes")]
    pub max_bytes: ByteSize,
    /// The most entries read of one source.
    pub max_urls: u64,
    /// How long the servers of one source may take to send it, and how long in all to wait for those that answer 429 or
    /// 503.
    #[serde(with = "duration")]
    pub timeout: Duration,
    /// What a run without `--crawl` does when a crawl of its spider is running. By default a recrawl exits, and any other run starts a
    /// crawl.
    pub if_running: Option<IfRunning>,
}

/// `producer.if_running` and `--if-running`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum IfRunning {
    /// Does nothing, with exit code 0.
    Exit,
    /// Adds to the crawl that runs.
    Join,
    /// Starts another.
    Start,
}

impl IfRunning {
    const ALL: [Self; 3] = [Self::Exit, Self::Join, Self::Start];

    /// The name in settings and flags.
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

/// A text that names no [`IfRunning`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write `exit`, `join` or `start`")]
pub struct UnknownIfRunning;

impl Default for Producer {
    /// A source far above the 50,000 URLs in 50 MB of sitemaps.org, which real sites exceed.
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

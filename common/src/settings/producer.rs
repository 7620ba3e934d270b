//! `[producer]`: how much a source, and all sources together, may ask for.

use std::num::NonZeroU64;
use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use super::{duration, exact_bytes};

/// `[producer]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Producer {
    /// The producer waits while its spider's crawls have as many URLs without a final state.
    pub max_backlog: NonZeroU64,
    /// The most bytes read of one source, as sent and unpacked.
    #[serde(serialize_with = "exact_bytes")]
    pub max_bytes: ByteSize,
    /// The most entries read of one source.
    pub max_urls: u64,
    /// How long the server of one source may take to send it.
    #[serde(with = "duration")]
    pub timeout: Duration,
}

impl Default for Producer {
    /// A source far above the 50,000 URLs in 50 MB of sitemaps.org, which real sites exceed.
    fn default() -> Self {
        Self {
            max_backlog: NonZeroU64::new(1_000_000).expect("it is not zero"),
            max_bytes: ByteSize::gb(1),
            max_urls: 10_000_000,
            timeout: Duration::from_secs(600),
        }
    }
}

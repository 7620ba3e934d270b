//! `[cache]`: the cache of responses.

use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use super::bytes::exact_bytes;
use super::secret::ServerUrl;
use crate::duration::{self, minutes};

/// `[cache]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// A separate Redis for responses; without one, `redis.url`.
    pub url: Option<ServerUrl>,
    /// Minimum time that a response is kept; `0s` turns the cache off.
    #[serde(with = "duration")]
    pub ttl: Duration,
    /// Maximum time that a response is kept if its origin allows it.
    #[serde(with = "duration")]
    pub max_ttl: Duration,
    /// Maximum size of all responses, in a Redis that evicts none by itself.
    #[serde(serialize_with = "exact_bytes")]
    pub max_bytes: ByteSize,
    /// The form in which a response is stored.
    pub encoding: Encoding,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            url: None,
            ttl: minutes(1),
            max_ttl: minutes(24 * 60),
            max_bytes: ByteSize::mb(100),
            encoding: Encoding::default(),
        }
    }
}

impl Cache {
    /// Returns the time that a response that is fresh for `lifetime` is kept.
    pub fn keeps(&self, lifetime: Duration) -> Duration {
        lifetime.min(self.max_ttl).max(self.ttl)
    }
}

/// `cache.encoding`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// As it was received, so that `redis-cli` shows the page.
    Plain,
    /// Compressed: about a fifth of the memory.
    #[default]
    Zstd,
}

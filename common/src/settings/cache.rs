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
    /// A Redis of its own for responses; without one, `redis.url`.
    pub url: Option<ServerUrl>,
    /// How long a response is kept at least; `0s` turns the cache off.
    #[serde(with = "duration")]
    pub ttl: Duration,
    /// How long a response is kept at most whose origin allows it.
    #[serde(with = "duration")]
    pub max_ttl: Duration,
    /// What all responses may take in a Redis that throws none away by itself.
    #[serde(serialize_with = "exact_bytes")]
    pub max_bytes: ByteSize,
    /// How a response is stored.
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
    /// For how long a response is kept that is fresh for `lifetime`.
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

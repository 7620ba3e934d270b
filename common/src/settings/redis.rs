//! `[redis]`: the store.

use std::path::PathBuf;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use super::bytes::exact_bytes;
use super::dedup::Dedup;
use super::node::Node;
use super::secret::ServerUrl;

/// `[redis]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redis {
    /// `redis://user:password@host:port/database`, or `rediss://` for TLS.
    pub url: ServerUrl,
    /// Whether the URL names one node of a Redis Cluster; the others are discovered.
    pub cluster: bool,
    /// Further nodes to discover the cluster from when the first is down.
    #[serde(default)]
    pub nodes: Vec<Node>,
    /// A PEM file with the certificates to trust in place of the system's; for the cache's Redis too.
    pub ca: Option<PathBuf>,
    /// The form of a spider's dedup, for spiders that have none yet.
    pub dedup: Dedup,
    /// Maximum size of all robots.txt files.
    #[serde(serialize_with = "exact_bytes")]
    pub max_robots_bytes: ByteSize,
}

impl Default for Redis {
    fn default() -> Self {
        Self {
            url: ServerUrl::new("redis://127.0.0.1:6379/0"),
            cluster: false,
            nodes: Vec::new(),
            ca: None,
            dedup: Dedup::Plain,
            max_robots_bytes: ByteSize::mb(100),
        }
    }
}

//! `[rabbitmq]`: the broker.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::key::FleetKey;
use super::node::Node;
use super::secret::ServerUrl;

/// `[rabbitmq]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RabbitMq {
    /// `amqp://user:password@host:port/vhost`, or `amqps://` for TLS.
    pub url: ServerUrl,
    /// Further nodes of the same cluster, tried in turn when one is away.
    #[serde(default)]
    pub nodes: Vec<Node>,
    /// A PEM file with the certificates to trust in place of the system's.
    pub ca: Option<PathBuf>,
    /// The key that signs the fleet's messages. Without it, any client of the broker passes for trawl.
    pub key: Option<FleetKey>,
    /// Previous keys: messages signed with them are still accepted.
    #[serde(default)]
    pub former_keys: Vec<FleetKey>,
}

impl Default for RabbitMq {
    fn default() -> Self {
        Self {
            url: ServerUrl::new("amqp://127.0.0.1:5672/%2f"),
            nodes: Vec::new(),
            ca: None,
            key: None,
            former_keys: Vec::new(),
        }
    }
}

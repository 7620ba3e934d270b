//! Further nodes of a cluster.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use url::{Host, Url};

use crate::as_text::as_text;

/// A node of a cluster: `host:port`. User, password and everything else are those of the server's URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Node {
    pub(super) host: Host,
    pub(super) port: u16,
}

/// The error for a text that is no node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no node: write `host:port`")]
pub struct NoNode(String);

impl FromStr for Node {
    type Err = NoNode;

    fn from_str(text: &str) -> Result<Self, NoNode> {
        let none = || NoNode(text.to_owned());
        let url = Url::parse(&format!("node://{text}")).map_err(|_| none())?;
        let host = url.host().ok_or_else(none)?.to_owned();
        let port = url.port().ok_or_else(none)?;
        let node = Self { host, port };
        if node.to_string() == text { Ok(node) } else { Err(none()) }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

as_text!(Node);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_a_host_and_a_port_and_nothing_else() {
        for text in ["mq2:5672", "10.0.0.2:5671", "[::1]:5672"] {
            assert_eq!(text.parse::<Node>().unwrap().to_string(), text);
        }
        for text in
            ["mq2", "mq2:", ":5672", "mq2:http", "amqp://mq2:5672", "user@mq2:5672", "mq2:5672/vhost", ""]
        {
            assert!(text.parse::<Node>().unwrap_err().to_string().contains("host:port"), "{text}");
        }
    }
}

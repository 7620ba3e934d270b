//! Server addresses, whose passwords are never shown.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;

use super::Node;

/// The URL of a server, user and password included. Shown, logged and serialised without the password.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl {
    url: String,
    is_guarded: bool,
}

impl ServerUrl {
    /// Creates the address `url`.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), is_guarded: false }
    }

    /// Returns the address marked as chosen by someone who does not own the machine: it is connected to only where
    /// requests for pages are allowed (`[fetch]`).
    #[must_use]
    pub fn guarded(self) -> Self {
        Self { is_guarded: true, ..self }
    }

    /// Returns whether it is connected to only where requests for pages are allowed.
    pub fn is_guarded(&self) -> bool {
        self.is_guarded
    }

    /// Returns the whole address, password included, only for a client's connect call.
    pub fn reveal(&self) -> &str {
        &self.url
    }

    /// Returns the address at another node of the cluster.
    pub fn at(&self, node: &Node) -> Self {
        let moved = Url::parse(&self.url).ok().and_then(|mut url| {
            url.set_host(Some(&node.host.to_string())).ok()?;
            url.set_port(Some(node.port)).ok()?;
            Some(Self { url: url.into(), ..*self })
        });
        // Only a text that is no URL cannot be changed, and connecting to it reports that.
        moved.unwrap_or_else(|| self.clone())
    }

    /// Returns whether the address asks for TLS: `amqps` or `rediss`.
    pub fn is_tls(&self) -> bool {
        Url::parse(&self.url).is_ok_and(|url| matches!(url.scheme(), "amqps" | "rediss"))
    }

    /// Returns the address at another host, for `RABBITMQ_HOST` and `REDIS_HOST`.
    pub(super) fn with_host(&self, host: &str) -> Option<Self> {
        let mut url = Url::parse(&self.url).ok()?;
        url.set_host(Some(host)).ok()?;
        Some(Self { url: url.into(), ..*self })
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Url::parse(&self.url) {
            Ok(mut url) if url.has_host() => {
                // A user without a password may be a token. Both calls fail only for a URL that can hold neither.
                if url.password().is_some() {
                    let _ = url.set_password(Some("***"));
                } else if !url.username().is_empty() {
                    let _ = url.set_username("***");
                }
                url.set_query(None);
                f.write_str(url.as_str())
            }
            // `user:password@host` parses as a URL too, with the user as its scheme.
            _ => f.write_str("(not the URL of a server)"),
        }
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<'de> Deserialize<'de> for ServerUrl {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Self::new)
    }
}

impl Serialize for ServerUrl {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_node_keeps_user_and_virtual_host() {
        let url = ServerUrl::new("amqps://trawl:s3cret@mq1:5671/crawls?heartbeat=5");
        let moved = url.at(&"[::1]:5673".parse().unwrap());
        assert_eq!(moved.reveal(), "amqps://trawl:s3cret@[::1]:5673/crawls?heartbeat=5");
        assert!(moved.is_tls());
    }

    #[test]
    fn a_password_shows_nowhere() {
        let url = ServerUrl::new("amqp://trawl:s3cret@mq:5672/%2f");
        let shown = format!("{url} {url:?} {}", serde_json::to_string(&url).unwrap());
        assert!(!shown.contains("s3cret"), "{shown}");
        assert!(shown.contains("amqp://trawl:***@mq:5672"), "{shown}");
        assert_eq!(ServerUrl::new("redis://t0ken@cache:6379/").to_string(), "redis://***@cache:6379/");
        for no_server in ["s3cret", "trawl:s3cret@mq:5672"] {
            assert!(!ServerUrl::new(no_server).to_string().contains("s3cret"));
        }
    }
}

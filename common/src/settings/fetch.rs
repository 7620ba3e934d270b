//! `[fetch]`: limits of fetching.

use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use super::bytes::exact_bytes;
use super::network::Network;
use super::ports::PortRange;
use super::secret::ServerUrl;
use crate::duration;
use crate::politeness::rate::Rate;
use crate::politeness::robots::RobotsName;

/// `[fetch]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fetch {
    /// Whether requests to loopback, private and link-local addresses are allowed.
    pub allow_private: bool,
    /// Networks to which requests are allowed although they are not public.
    #[serde(default)]
    pub allow_networks: Vec<Network>,
    /// The ports to which requests are allowed.
    pub ports: Vec<PortRange>,
    /// A proxy for all requests, `http://user:password@host:port` or `socks5://`. Its own address is not restricted;
    /// the addresses of pages are.
    pub proxy: Option<ServerUrl>,
    /// The highest rate of all requests of one process.
    pub max_rate: Rate,
    /// Time limit for one request, body included.
    #[serde(with = "duration")]
    pub timeout: Duration,
    /// Time limit for connecting.
    #[serde(with = "duration")]
    pub connect_timeout: Duration,
    /// Maximum size of a body after decoding.
    #[serde(serialize_with = "exact_bytes")]
    pub max_body: ByteSize,
    /// The name sent to servers; `contact` is appended.
    pub user_agent: String,
    /// A URL or address at which the crawl's owner can be reached.
    pub contact: Option<String>,
    /// The name of this crawler in robots.txt, if not the product name in the user agent.
    pub robots_name: Option<RobotsName>,
}

impl Default for Fetch {
    fn default() -> Self {
        Self {
            allow_private: false,
            allow_networks: Vec::new(),
            ports: vec![
                PortRange::range(80, 80),
                PortRange::range(443, 443),
                PortRange::range(1024, u16::MAX),
            ],
            proxy: None,
            max_rate: Rate::Unlimited,
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            max_body: ByteSize::mb(10),
            user_agent: concat!("trawl/", env!("CARGO_PKG_VERSION")).to_owned(),
            contact: None,
            robots_name: None,
        }
    }
}

impl Fetch {
    /// Returns the `User-Agent` as sent: the crawler's name, and the contact in brackets.
    pub fn user_agent_line(&self) -> String {
        match &self.contact {
            Some(contact) => format!("{} (+{contact})", self.user_agent),
            None => self.user_agent.clone(),
        }
    }

    /// Returns the name of this crawler in robots.txt: as set, or else the product name in the user agent; `None`
    /// if there is neither.
    pub fn robots_name(&self) -> Option<RobotsName> {
        self.robots_name.clone().or_else(|| RobotsName::of_user_agent(&self.user_agent))
    }
}

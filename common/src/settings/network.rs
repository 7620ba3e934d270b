//! Networks by address and prefix.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::as_text::as_text;

/// A network, `10.1.0.0/16`, or one address, `127.0.0.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network(IpNet);

/// The error for a text that is neither an address nor a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no network: write `10.1.0.0/16`, or one address")]
pub struct NoNetwork(String);

impl Network {
    /// Returns whether `address` lies in the network. IPv4 and its IPv6 forms are different addresses.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }
}

impl FromStr for Network {
    type Err = NoNetwork;
    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        network.map(Self).map_err(|_| NoNetwork(text.to_owned()))
    }
}

as_text!(Network);

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.prefix_len() == self.0.max_prefix_len() {
            return self.0.addr().fmt(f);
        }
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_a_prefix_or_one_address() {
        let contains = |network: &str, address: &str| {
            network.parse::<Network>().unwrap().contains(address.parse().unwrap())
        };
        assert!(contains("10.1.0.0/16", "10.1.255.255") && !contains("10.1.0.0/16", "10.2.0.0"));
        assert!(contains("127.0.0.1", "127.0.0.1") && !contains("127.0.0.1", "127.0.0.2"));
        assert!(contains("fd00::/8", "fd12::1") && !contains("127.0.0.1", "::ffff:127.0.0.1"));
    }

    #[test]
    fn a_network_is_written_as_it_is_read() {
        for text in ["10.1.0.0/16", "127.0.0.1", "fd00::/8", "::1"] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), text);
        }
        for text in ["", "10.1", "10.0.0.0/33", "localhost"] {
            assert!(text.parse::<Network>().unwrap_err().to_string().contains("10.1.0.0/16"), "{text}");
        }
    }
}

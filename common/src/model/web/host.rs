//! The key under which the schedule of a server is stored.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::as_text::text;
use crate::web::url::Host;

/// The name of a schedule: a host, a domain whose hosts share one, `@name` for a group that settings
/// name, or a network for the hosts at one address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostKey(Arc<str>);

text!(HostKey);

impl HostKey {
    /// Returns the schedule of one host.
    pub fn host(host: &Host) -> Self {
        Self(host.as_str().into())
    }

    /// Returns the schedule of a host's registrable domain, by the Public Suffix List; of the host itself if it
    /// has none, like an address or a single label.
    pub fn domain(host: &Host) -> Self {
        let text = host.as_str();
        let domain = if host.address().is_some() { None } else { psl::domain_str(text) };
        Self(domain.unwrap_or(text).into())
    }

    /// Returns the schedule of all hosts that settings put into the group `name`.
    pub fn group(name: &str) -> Self {
        Self(format!("@{name}").into())
    }

    /// Returns the schedule of all hosts at one address. For IPv6 that is a /64, the least that one customer has
    /// (RFC 6177).
    pub fn address(address: IpAddr) -> Self {
        let network = network(address);
        let prefix = if network.is_ipv4() { 32 } else { 64 };
        Self(format!("{network}/{prefix}").into())
    }

    /// Returns the key that [`Display`](std::fmt::Display) wrote as this text.
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }
}

/// Returns the first address of the network that counts as one address.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_of_an_address_is_that_of_what_one_customer_has() {
        let key = |address: &str| HostKey::address(address.parse().unwrap()).to_string();
        let addresses = ["192.0.2.7", "::ffff:192.0.2.7", "2001:db8:1:2::1", "2001:db8:1:2:3:4:5:6"];
        let keys = ["192.0.2.7/32", "192.0.2.7/32", "2001:db8:1:2::/64", "2001:db8:1:2::/64"];
        assert_eq!(addresses.map(key), keys);
    }
}

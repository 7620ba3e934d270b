//! Tells addresses of the public internet from others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether `address` belongs to a host of the public internet.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Follows the IANA registry of special-purpose IPv4 addresses (RFC 6890).
fn is_public_v4(address: Ipv4Addr) -> bool {
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation();
    let reserved = match address.octets() {
        // "This network", unspecified.
        [0, ..] => true,
        // Carrier-grade NAT (RFC 6598).
        [100, second, ..] => second & 0xc0 == 64,
        // Azure's servers for a tenant's machines: a public address that leads to the host itself.
        [168, 63, 129, 16] => true,
        // IETF protocol assignments.
        [192, 0, 0, _] => true,
        // 6to4 relays (RFC 7526).
        [192, 88, 99, _] => true,
        // Benchmarking (RFC 2544).
        [198, 18 | 19, ..] => true,
        // Reserved, and broadcast.
        [240..=255, ..] => true,
        _ => false,
    };
    !special && !reserved
}

/// Global unicast is 2000::/3 (RFC 4291), so loopback, unique-local, link-local, site-local, multicast,
/// IPv4-mapped and IPv4-compatible addresses and a network's own NAT64 are all outside. A few blocks inside are
/// special too.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // NAT64 (RFC 6052): leads to the IPv4 address in the last 32 bits.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            is_public_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
        }
        // IETF protocol assignments, including Teredo.
        [0x2001, 0..0x200, ..] => false,
        // Documentation.
        [0x2001, 0xdb8, ..] | [0x3fff, 0..0x1000, ..] => false,
        // 6to4: leads to an IPv4 address; obsolete.
        [0x2002, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> bool {
        !is_public(text.parse().unwrap())
    }

    #[test]
    fn addresses_off_the_public_internet_are_refused() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.9.9.9",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
        ] {
            assert!(refused(address), "{address}");
        }
        for address in [
            "::",
            "::1",
            "::7f00:1",
            "::808:808",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::808:808",
            "64:ff9b:0:0:0:1:808:808",
            "100::1",
            "2001::1",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:808:808::1",
            "3fff::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(refused(address), "{address}");
        }
    }

    #[test]
    fn public_addresses_and_their_nat64_form_are_allowed() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00:1450:4001::1",
            "64:ff9b::808:808",
        ] {
            assert!(!refused(address), "{address}");
        }
    }
}

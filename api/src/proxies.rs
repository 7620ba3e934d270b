//! The origin of a request, as stated by the proxies in front of the API.

use std::net::IpAddr;

use axum::http::HeaderMap;
use trawl_common::settings::Network;

/// Maximum number of hops to read: more than anyone has proxies.
const MAX_HOPS: usize = 32;

/// Returns the origin of a request that `peer` sent: the last address in `X-Forwarded-For` or `Forwarded`
/// (RFC 7239) that is not a trusted proxy's. Each proxy appends the address from which it got the request;
/// anything before the entry of the first trusted proxy may be forged.
pub(crate) fn origin(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
    let mut origin = peer;
    for hop in hops(headers) {
        if !is_trusted(origin) {
            break;
        }
        // Text that is not an address hides the origin: the proxy that added it counts instead.
        let Some(address) = hop else { break };
        origin = address;
    }
    origin
}

/// Returns the addresses that proxies have added, the last one first; none if both headers are present.
fn hops(headers: &HeaderMap) -> impl Iterator<Item = Option<IpAddr>> {
    let (plain, forwarded) = ("x-forwarded-for", "forwarded");
    let name = match (headers.contains_key(plain), headers.contains_key(forwarded)) {
        (true, false) => Some(plain),
        (false, true) => Some(forwarded),
        _ => None,
    };
    let values = name.into_iter().flat_map(|name| headers.get_all(name).iter().rev());
    let elements = values.flat_map(|value| value.to_str().unwrap_or_default().rsplit(','));
    elements
        .take(MAX_HOPS)
        .map(move |element| if name == Some(forwarded) { for_of(element) } else { address(element) })
}

/// Returns the `for` parameter in an element of `Forwarded`.
fn for_of(element: &str) -> Option<IpAddr> {
    let mut parameters = element.split(';').filter_map(|parameter| parameter.split_once('='));
    let (_, value) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
    address(value.trim().trim_matches('"'))
}

/// Parses an address with an optional port; an IPv6 address with a port is in brackets.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(address, _)| address);
    let address = bare.unwrap_or(text);
    let without_port = || address.split_once(':').and_then(|(address, _)| address.parse().ok());
    address.parse().ok().or_else(without_port).map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(peer: &str, headers: &[(&'static str, &str)]) -> String {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let trusted = ["10.0.0.0/8", "::1"].map(|network| network.parse().unwrap());
        origin(peer.parse().unwrap(), &HeaderMap::from_iter(headers), &trusted).to_string()
    }

    #[test]
    fn only_what_trusted_proxies_have_added_counts() {
        for (peer, headers, origin) in [
            ("192.0.2.1", vec![("x-forwarded-for", "198.51.100.7")], "192.0.2.1"),
            ("10.0.0.1", vec![], "10.0.0.1"),
            ("10.0.0.1", vec![("x-forwarded-for", "198.51.100.7")], "198.51.100.7"),
            ("10.0.0.1", vec![("x-forwarded-for", "127.0.0.1, 198.51.100.7")], "198.51.100.7"),
            ("10.0.0.1", vec![("x-forwarded-for", "1.1.1.1, 198.51.100.7, 10.0.0.2")], "198.51.100.7"),
            ("10.0.0.1", vec![("x-forwarded-for", "198.51.100.7:4711")], "198.51.100.7"),
            ("10.0.0.1", vec![("x-forwarded-for", "unknown")], "10.0.0.1"),
            ("::1", vec![("forwarded", "for=\"[2001:db8::1]:80\";proto=https")], "2001:db8::1"),
            ("::1", vec![("forwarded", "for=1.1.1.1, For=192.0.2.43;by=10.0.0.1")], "192.0.2.43"),
            ("::1", vec![("forwarded", "for=192.0.2.43"), ("x-forwarded-for", "1.1.1.1")], "::1"),
        ] {
            assert_eq!(from(peer, &headers), origin, "{peer} {headers:?}");
        }
    }

    #[test]
    fn several_fields_are_one_list() {
        let mut headers = HeaderMap::new();
        headers.append("x-forwarded-for", "1.1.1.1".parse().unwrap());
        headers.append("x-forwarded-for", "198.51.100.7".parse().unwrap());
        let trusted = ["10.0.0.1".parse().unwrap()];
        let origin = origin("10.0.0.1".parse().unwrap(), &headers, &trusted);
        assert_eq!(origin.to_string(), "198.51.100.7");
    }
}

//! The key of a URL in an index: its host from right to left, so that sorted keys group a site's pages.
//!
//! Readers compute the same key when they look a URL up (the Internet Archive's SURT): without `www.`, in lower
//! case, percent-encoded as little as possible, and with the query's parameters sorted. Session ids are kept here.

use trawl_common::web::url::CanonicalUrl;

/// Returns the key of a URL: `com,example)/path?a=1&b=2`.
pub(super) fn key(url: &CanonicalUrl) -> String {
    let url = url.to_url();
    let mut key = reversed(url.host_str().unwrap_or_default());
    if let Some(port) = url.port() {
        key.push_str(&format!(":{port}"));
    }
    key.push(')');
    key.push_str(&path(url.path()));
    if let Some(query) = url.query().filter(|query| !query.is_empty()) {
        key.push('?');
        key.push_str(&in_order(&plain(query)));
    }
    key
}

fn reversed(host: &str) -> String {
    let host = host.trim_start_matches('[').trim_end_matches(['.', ']']);
    let host =
        match host.strip_prefix("www").map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit())) {
            Some(rest) if rest.starts_with('.') => &rest[1..],
            _ => host,
        };
    host.split('.').rev().collect::<Vec<_>>().join(",")
}

fn path(path: &str) -> String {
    let plain = plain(path);
    let parts: Vec<&str> = plain.split('/').filter(|part| !part.is_empty()).collect();
    format!("/{}", parts.join("/"))
}

fn in_order(query: &str) -> String {
    let mut parameters: Vec<(&str, Option<&str>)> = query
        .split('&')
        .map(|parameter| {
            parameter.split_once('=').map_or((parameter, None), |(name, value)| (name, Some(value)))
        })
        .collect();
    parameters.sort_unstable();
    let shown = |(name, value): (&str, Option<&str>)| match value {
        Some(value) => format!("{name}={value}"),
        None => name.to_owned(),
    };
    parameters.into_iter().map(shown).collect::<Vec<_>>().join("&")
}

/// Returns a text in lower case, percent-decoded until nothing is left to decode, and encoded once.
fn plain(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    for &byte in text.as_bytes() {
        bytes.push(byte);
        // A decoded character may complete another escape.
        while let [.., b'%', high, low] = bytes[..]
            && let (Some(high), Some(low)) = (digit(high), digit(low))
        {
            bytes.truncate(bytes.len() - 3);
            bytes.push(high << 4 | low);
        }
    }
    let mut plain = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            0x21..0x7f if byte != b'%' && byte != b'#' => plain.push(byte.to_ascii_lowercase().into()),
            _ => plain.push_str(&format!("%{byte:02x}")),
        }
    }
    plain
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Python's `surt` 0.3.1 makes them.
    #[test]
    fn a_key_is_as_the_internet_archive_makes_it() {
        for (url, expected) in [
            ("http://www.Example.com/", "com,example)/"),
            ("http://www2.example.com/x", "com,example)/x"),
            ("http://wwwx.example.com/", "com,example,wwwx)/"),
            ("http://www.com/", "com)/"),
            ("https://example.com:8443/A/B/?b=2&A=1&c", "com,example:8443)/a/b?a=1&b=2&c"),
            ("https://example.com:443/a//b/", "com,example)/a/b"),
            ("http://example.com/?", "com,example)/"),
            ("http://127.0.0.1:8080/x", "1,0,0,127:8080)/x"),
            ("http://[::1]/x", "::1)/x"),
            ("http://user.example.com./x", "com,example,user)/x"),
            ("http://example.com/%7Efoo/%e4%25", "com,example)/~foo/%e4%25"),
            ("http://example.com/%25252541", "com,example)/a"),
            ("http://xn--zrich-kva.ch/é", "ch,xn--zrich-kva)/%c3%a9"),
            ("http://example.com/a%20b?c=d+e", "com,example)/a%20b?c=d+e"),
            ("https://example.com/q?z=1&&y=%2F&", "com,example)/q?&&y=/&z=1"),
            ("http://example.com/A%2Fb?%41=%42%20", "com,example)/a/b?a=b%20"),
        ] {
            assert_eq!(key(&url.parse().unwrap()), expected, "{url}");
        }
    }
}

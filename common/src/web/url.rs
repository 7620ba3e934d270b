//! URLs in the one form that trawl compares, stores and fetches.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use ::url::{Host as UrlHost, Url};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::as_text::as_text;
use crate::escape;

/// The longest URL that trawl admits, in bytes of its canonical form.
pub const MAX_URL_BYTES: usize = 8 * 1024;

/// Why a text is not a URL that can be crawled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrl {
    /// Longer than [`MAX_URL_BYTES`].
    #[error("longer than {MAX_URL_BYTES} bytes")]
    TooLong,
    /// Not an absolute URL by the WHATWG URL standard.
    #[error("not an absolute URL: {0}")]
    Syntax(#[from] ::url::ParseError),
    /// A scheme that is not `http` or `https`.
    #[error("scheme `{0}` is not http or https")]
    Scheme(String),
    /// No host, or an empty one.
    #[error("no host")]
    NoHost,
    /// A user name or password in the URL: it would reach queues, logs and items.
    #[error("credentials in the URL")]
    Credentials,
    /// Not text in UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
}

/// An absolute `http` or `https` URL in canonical form, cheap to clone.
///
/// Canonical is: serialised by the WHATWG URL standard (lower-case scheme and host, default port
/// dropped, dot segments resolved, percent-encoded where needed), with the escapes that are left in the one spelling of
/// RFC 3986 6.2.2 (in capitals, none of unreserved characters), the host without a final dot, without a fragment. Two
/// texts with the same canonical form are one URL to trawl; which URLs are one though their queries differ is a matter of
/// settings: [`Urls::canonical`](crate::settings::Urls::canonical).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CanonicalUrl(Arc<str>);

impl CanonicalUrl {
    /// Reads a URL as people, sitemaps and pages write it; surrounding white space is ignored.
    pub fn parse(text: &str) -> Result<Self, InvalidUrl> {
        let text = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\u{feff}');
        // Refused before it is parsed: parsing may grow a text threefold.
        if text.len() > MAX_URL_BYTES {
            return Err(InvalidUrl::TooLong);
        }
        Self::from_url(Url::parse(text)?)
    }

    /// The canonical form of an already parsed URL.
    pub fn from_url(mut url: Url) -> Result<Self, InvalidUrl> {
        admit(&url)?;
        url.set_fragment(None);
        drop_final_dot(&mut url)?;
        if let Cow::Owned(text) = escape::normalised(url.as_str()) {
            url = Url::parse(&text)?;
        }
        if url.as_str().len() > MAX_URL_BYTES {
            return Err(InvalidUrl::TooLong);
        }
        Ok(Self(String::from(url).into()))
    }

    /// Reads a URL out of trawl's own records and messages, in which an older version may have written it.
    ///
    /// Older versions kept escapes as they were written, and a final dot of the host. Such a URL stays as it is, for by that
    /// text its record is found. All else is read as by [`CanonicalUrl::parse`].
    pub fn recorded(text: &str) -> Result<Self, InvalidUrl> {
        let is_as_written =
            |url: &Url| url.as_str() == text && url.fragment().is_none() && text.len() <= MAX_URL_BYTES;
        match Url::parse(text).ok().filter(is_as_written) {
            Some(url) => admit(&url).map(|()| Self(text.into())),
            None => Self::parse(text),
        }
    }

    /// The URL as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What is seen where another site led to this page, which does not make the page itself seen. No page has that name, for
    /// none has a fragment.
    pub fn led_to_from_elsewhere(&self) -> Self {
        Self(format!("{}#elsewhere", self.0).into())
    }

    /// The URL with its parts.
    pub fn to_url(&self) -> Url {
        Url::parse(&self.0).expect("a canonical URL parses: it was serialised by the same parser")
    }

    /// The host to be polite to, without its port.
    pub fn host(&self) -> Host {
        Host(strip_port(authority(&self.0)).into())
    }

    /// The scheme, host and port.
    pub fn origin(&self) -> Origin {
        let path = self.0.match_indices(['/', '?']).nth(2).map_or(self.0.len(), |(at, _)| at);
        Origin(self.0[..path].into())
    }

    /// The hash that stands for this URL in ids.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self.as_str())
    }
}

/// Whether this is a URL that can be crawled at all.
fn admit(url: &Url) -> Result<(), InvalidUrl> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(InvalidUrl::Scheme(url.scheme().chars().take(32).collect()));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(InvalidUrl::NoHost);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(InvalidUrl::Credentials);
    }
    Ok(())
}

/// A name that ends in a dot is the same name, only not to be looked for in local domains.
fn drop_final_dot(url: &mut Url) -> Result<(), InvalidUrl> {
    let host = url.host_str().and_then(|host| host.strip_suffix('.')).filter(|host| !host.ends_with('.'));
    match host.map(str::to_owned) {
        Some(host) if host.is_empty() => Err(InvalidUrl::NoHost),
        Some(host) => Ok(url.set_host(Some(&host))?),
        None => Ok(()),
    }
}

/// The host of a canonical URL, with its port if that is not the usual one: what stats by host count by.
pub fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    rest.split(['/', '?']).next().unwrap_or(rest)
}

fn strip_port(authority: &str) -> &str {
    if authority.starts_with('[') {
        return authority.split_inclusive(']').next().unwrap_or(authority);
    }
    authority.split(':').next().unwrap_or(authority)
}

impl fmt::Display for CanonicalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for CanonicalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

as_text!(CanonicalUrl);

impl FromStr for CanonicalUrl {
    type Err = InvalidUrl;
    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        Self::parse(text)
    }
}

/// A host name or address as it stands in a canonical URL: lower case, IPv6 in brackets, no port.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Host(Arc<str>);

impl Host {
    /// The host as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address that this is, unless it is a name.
    pub fn address(&self) -> Option<IpAddr> {
        self.0.trim_matches(['[', ']']).parse().ok()
    }

    /// Whether it is an address, or a name that a name server could know: up to 253 characters, in parts of letters, digits, hyphens and
    /// underscores (RFC 1035 2.3.4). A URL may have others, which lead nowhere.
    pub fn can_exist(&self) -> bool {
        let is_part = |part: &str| {
            let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            (1..=63).contains(&part.len()) && part.bytes().all(is_fit)
        };
        let name = self.0.strip_suffix('.').unwrap_or(&self.0);
        self.address().is_some() || (name.len() <= 253 && name.split('.').all(is_part))
    }

    /// Whether this is `domain` or a host below it.
    pub fn is_within(&self, domain: &str) -> bool {
        self.0.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A scheme, host and port, as they stand at the start of a canonical URL: `https://example.com:8443`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin(Arc<str>);

impl Origin {
    /// The origin as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The host, without the port.
    pub fn host(&self) -> Host {
        Host(strip_port(authority(&self.0)).into())
    }

    /// Whether its port is that of its scheme.
    pub fn has_usual_port(&self) -> bool {
        let authority = authority(&self.0);
        strip_port(authority) == authority
    }

    /// Where its robots.txt is (RFC 9309 2.3).
    pub fn robots_txt(&self) -> CanonicalUrl {
        CanonicalUrl(format!("{}/robots.txt", self.0).into())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The address that a URL names literally, if it does: such a host never asks a resolver.
pub fn literal_address(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        UrlHost::Ipv4(address) => Some(address.into()),
        UrlHost::Ipv6(address) => Some(address.into()),
        UrlHost::Domain(_) => None,
    }
}

/// The first 128 bits of the SHA-256 of a canonical URL; any language can compute it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub [u8; 16]);

impl Fingerprint {
    /// The fingerprint of any text.
    pub fn of(text: &str) -> Self {
        let digest = Sha256::digest(text.as_bytes());
        let mut first = [0; 16];
        first.copy_from_slice(&digest[..16]);
        Self(first)
    }

    /// Its first 64 bits as a signed number, big-endian: what a packed dedup keeps of a URL.
    pub fn short(self) -> i64 {
        (u128::from_be_bytes(self.0) >> 64) as i64
    }
}

impl FromStr for Fingerprint {
    type Err = InvalidFingerprint;
    /// From 32 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, InvalidFingerprint> {
        let is_hexadecimal = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_hexadecimal);
        number.map(|number| Self(number.to_be_bytes())).ok_or(InvalidFingerprint)
    }
}

/// A text that is no [`Fingerprint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint is 32 hexadecimal digits")]
pub struct InvalidFingerprint;

impl fmt::Display for Fingerprint {
    /// 32 lower-case hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn canonical(text: &str) -> String {
        CanonicalUrl::parse(text).unwrap().to_string()
    }

    #[test]
    fn spellings_of_one_url_become_one() {
        let expected = "https://example.com/a/b?x=1&y=2";
        for text in
            ["https://example.com/a/b?x=1&y=2", "  HTTPS://EXAMPLE.com:443/a/./c/../b?x=1&y=2#part \n"]
        {
            assert_eq!(canonical(text), expected);
        }
        assert_eq!(canonical("http://bücher.example/ä"), "http://xn--bcher-kva.example/%C3%A4");
    }

    #[test]
    fn escapes_and_the_final_dot_of_a_host_have_one_spelling() {
        for (text, expected) in [
            ("http://a.example/%7ea", "http://a.example/~a"),
            ("http://a.example./%7Ea", "http://a.example/~a"),
            ("http://a.example.:8080?%6c=%2d", "http://a.example:8080/?l=-"),
            ("http://a.example/a%2fb?c%2fd", "http://a.example/a%2Fb?c%2Fd"),
            ("http://a.example/?%75tm_source=x&y", "http://a.example/?utm_source=x&y"),
            ("http://a.example/a/%2E%2e/b", "http://a.example/b"),
            ("http://127.0.0.1./", "http://127.0.0.1/"),
            ("http://a.example../", "http://a.example../"),
        ] {
            assert_eq!(canonical(text), expected);
        }
        assert_eq!(CanonicalUrl::parse("http://./"), Err(InvalidUrl::NoHost));
    }

    #[test]
    fn what_is_another_resource_keeps_its_spelling() {
        for text in [
            "http://a.example/a%2Fb",
            "http://a.example/a/b",
            "http://a.example/?a=1+2",
            "http://a.example/?a=1%2B2",
            "http://a.example/?a=1%202",
            "http://a.example/?",
            "http://a.example/a/",
            "http://a.example//a",
            "http://a.example/A",
            "http://a.example/;p",
            "http://a.example/%3Bp",
            "http://a.example/%2541",
        ] {
            assert_eq!(canonical(text), text);
        }
    }

    #[test]
    fn a_recorded_url_stays_as_an_older_version_wrote_it() {
        for text in ["http://a.example./%7ea?%2f", "http://a.example/~a"] {
            assert_eq!(CanonicalUrl::recorded(text).unwrap().as_str(), text);
        }
        assert_eq!(
            CanonicalUrl::recorded("HTTP://a.example/%7ea#x").unwrap().as_str(),
            "http://a.example/~a"
        );
        for text in ["http://user@a.example/", "ftp://a.example/", "a.example", ""] {
            assert!(CanonicalUrl::recorded(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_crawled_says_why() {
        let reason = |text: &str| CanonicalUrl::parse(text).unwrap_err().to_string();
        assert_eq!(reason("/relative"), "not an absolute URL: relative URL without a base");
        assert_eq!(reason("javascript:alert(1)"), "scheme `javascript` is not http or https");
        assert_eq!(reason("ftp://example.com/"), "scheme `ftp` is not http or https");
        assert_eq!(reason("http://user:secret@example.com/"), "credentials in the URL");
        assert_eq!(reason(&format!("http://example.com/{}", "x".repeat(9000))), "longer than 8192 bytes");
        assert!(CanonicalUrl::parse("").is_err());
    }

    #[test]
    fn a_host_has_no_port_and_keeps_its_brackets() {
        let host = |text: &str| CanonicalUrl::parse(text).unwrap().host().to_string();
        assert_eq!(host("http://Example.com:8080/x"), "example.com");
        assert_eq!(host("http://[::1]:8080/x"), "[::1]");
        assert_eq!(host("http://127.1/x"), "127.0.0.1");
    }

    #[test]
    fn an_origin_has_a_port_if_it_is_not_the_usual_one() {
        let origin = |text: &str| CanonicalUrl::parse(text).unwrap().origin().to_string();
        assert_eq!(origin("http://Example.com:8080/x/y?z"), "http://example.com:8080");
        assert_eq!(origin("https://[::1]:443?x=/"), "https://[::1]");
        let robots = CanonicalUrl::parse("http://a.example/b").unwrap().origin().robots_txt();
        assert_eq!(robots.as_str(), "http://a.example/robots.txt");
    }

    #[test]
    fn a_domain_holds_its_subdomains_and_no_lookalikes() {
        let host = |text: &str| CanonicalUrl::parse(text).unwrap().host();
        assert!(host("http://www.httpbin.org/").is_within("httpbin.org"));
        assert!(host("http://httpbin.org/").is_within("httpbin.org"));
        assert!(!host("http://nothttpbin.org/").is_within("httpbin.org"));
    }

    #[test]
    fn a_fingerprint_is_the_start_of_sha_256() {
        let fingerprint = Fingerprint::of("abc");
        assert_eq!(fingerprint.to_string(), "ba7816bf8f01cfea414140de5dae2223");
        assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        assert_eq!(fingerprint.short(), 0xba78_16bf_8f01_cfea_u64 as i64);
        for nonsense in ["", "ba78", "+a7816bf8f01cfea414140de5dae2223", "xa7816bf8f01cfea414140de5dae2223"] {
            assert_eq!(nonsense.parse::<Fingerprint>(), Err(InvalidFingerprint));
        }
    }

    /// What a server makes of a path or a query: its parts, decoded.
    fn decoded(text: &str) -> Vec<Vec<u8>> {
        let decode = |part: &str| {
            let (mut out, mut rest) = (Vec::new(), part.as_bytes());
            while let Some(first) = rest.first() {
                let octet = escape::escaped(rest);
                out.push(octet.unwrap_or(*first));
                rest = &rest[if octet.is_some() { 3 } else { 1 }..];
            }
            out
        };
        text.split(['/', '?', '&', '=', ';', '+']).map(decode).collect()
    }

    proptest! {
        #[test]
        fn the_canonical_form_is_a_fixed_point(path in "([ -~]|%[0-9a-fA-F]{2}){0,40}", query in "([ -~]|%[0-9a-fA-F]{2}){0,40}") {
            for host in ["example.com", "example.com."] {
                if let Ok(once) = CanonicalUrl::parse(&format!("http://{host}/{path}?{query}")) {
                    let twice = CanonicalUrl::parse(once.as_str()).unwrap();
                    let recorded = CanonicalUrl::recorded(once.as_str()).unwrap();
                    let host = once.host();
                    prop_assert_eq!(host.as_str(), "example.com");
                    prop_assert_eq!(&recorded, &once);
                    prop_assert_eq!(once, twice);
                }
            }
        }

        #[test]
        fn a_server_is_asked_for_what_the_text_means(path in "([a-z/.]|%[0-9a-fA-F]{1,2}){0,20}", query in "([a-z&=/+]|%[0-9a-fA-F]{1,2}){0,20}") {
            let url = Url::parse(&format!("http://example.com/{path}?{query}")).unwrap();
            let canonical = CanonicalUrl::from_url(url.clone()).unwrap().to_url();
            prop_assert_eq!(decoded(canonical.path()), decoded(url.path()));
            prop_assert_eq!(decoded(canonical.query().unwrap_or_default()), decoded(url.query().unwrap_or_default()));
        }

        #[test]
        fn what_is_admitted_is_visible_ascii(host in "(.|[a-z]){0,6}", rest in "(?s:.){0,40}") {
            if let Ok(url) = CanonicalUrl::parse(&format!("http://{host}example.com/{rest}")) {
                prop_assert!(url.as_str().bytes().all(|byte| byte.is_ascii_graphic()), "{url:?}");
            }
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC{0,200}") {
            let _ = CanonicalUrl::parse(&text);
        }
    }
}

//! URLs in the canonical form that trawl compares, stores and fetches.

mod fingerprint;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use ::url::{Host as UrlHost, Url};
use serde::{Deserialize, Serialize};

pub use self::fingerprint::{Fingerprint, InvalidFingerprint};
use crate::as_text::{as_text, text};
use crate::escape;
use crate::recorded::Recorded;

/// Maximum length of an admitted URL, in bytes of its canonical form.
pub const MAX_URL_BYTES: usize = 8 * 1024;

/// The reason why a text is not a URL that can be crawled.
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
/// The canonical form is serialised by the WHATWG URL standard (lower-case scheme and host, default port dropped, dot
/// segments resolved, percent-encoded where needed), with the remaining escapes in the one spelling of RFC 3986 6.2.2
/// (in capitals, none of unreserved characters), the host without a final dot, without a fragment. Two texts with the
/// same canonical form are one URL to trawl. Whether URLs with different queries are equal depends on the settings:
/// [`Urls::canonical`](crate::settings::Urls::canonical).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CanonicalUrl(Arc<str>);

impl CanonicalUrl {
    /// Parses a URL as people, sitemaps and pages write it; surrounding white space is ignored.
    pub fn parse(text: &str) -> Result<Self, InvalidUrl> {
        let text = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\u{feff}');
        // Rejected before parsing, because parsing may grow a text threefold.
        if text.len() > MAX_URL_BYTES {
            return Err(InvalidUrl::TooLong);
        }
        Self::from_url(Url::parse(text)?)
    }

    /// Returns the form in which an already parsed URL is sent to a server: canonical except for its escapes, which
    /// stay as they are written. To some servers another spelling is another URL, and a signature may cover the exact
    /// text.
    pub fn as_written(mut url: Url) -> Result<Self, InvalidUrl> {
        admit(&url)?;
        url.set_fragment(None);
        drop_final_dot(&mut url)?;
        if url.as_str().len() > MAX_URL_BYTES {
            return Err(InvalidUrl::TooLong);
        }
        Ok(Self(String::from(url).into()))
    }

    /// Returns the spelling of `url` if this is its canonical form and only the spelling differs.
    pub fn spelling(&self, url: Url) -> Option<Self> {
        // Called for each link of each page; few have an escape.
        if !url.as_str().contains('%') {
            return None;
        }
        let written = Self::as_written(url).ok()?;
        (written != *self && written.normalised() == *self).then_some(written)
    }

    /// Returns the canonical form, also of a URL created by [`as_written`](Self::as_written).
    #[must_use]
    pub fn normalised(&self) -> Self {
        match escape::normalised(&self.0) {
            Cow::Borrowed(_) => self.clone(),
            Cow::Owned(text) => Self::parse(&text).unwrap_or_else(|_| self.clone()),
        }
    }

    /// Returns the canonical form of an already parsed URL.
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

    /// Reads a URL from trawl's own records and messages, which an older version may have written.
    ///
    /// Older versions kept escapes as they were written, and a final dot of the host. Such a URL is kept as it is,
    /// because its record is found by that text. Any other text is read as by [`CanonicalUrl::parse`].
    pub fn recorded(text: &str) -> Result<Self, InvalidUrl> {
        let is_as_written =
            |url: &Url| url.as_str() == text && url.fragment().is_none() && text.len() <= MAX_URL_BYTES;
        match Url::parse(text).ok().filter(is_as_written) {
            Some(url) => admit(&url).map(|()| Self(text.into())),
            None => Self::parse(text),
        }
    }

    /// Returns the name that is marked as seen when another site led to this page, which does not mark the page itself.
    /// No page has that name, because page URLs have no fragment.
    pub fn led_to_from_elsewhere(&self) -> Self {
        Self(format!("{}#elsewhere", self.0).into())
    }

    /// Returns the parsed URL.
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
        Fingerprint::from_text(self.as_str())
    }
}

/// Checks that this is a URL that can be crawled.
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

/// Removes the final dot of a host: the name is the same, except that it is not looked up in local domains.
fn drop_final_dot(url: &mut Url) -> Result<(), InvalidUrl> {
    let host = url.host_str().and_then(|host| host.strip_suffix('.')).filter(|host| !host.ends_with('.'));
    match host.map(str::to_owned) {
        Some(host) if host.is_empty() => Err(InvalidUrl::NoHost),
        Some(host) => Ok(url.set_host(Some(&host))?),
        None => Ok(()),
    }
}

/// Returns the host of a canonical URL, with its port if that is not the default one. Stats by host are counted by it.
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

impl fmt::Debug for CanonicalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Recorded for CanonicalUrl {
    fn text(&self) -> &str {
        self.as_str()
    }

    fn read(text: &str) -> Result<Self, String> {
        Self::recorded(text).map_err(|error| error.to_string())
    }
}

text!(CanonicalUrl, Host, Origin);
as_text!(CanonicalUrl);

impl FromStr for CanonicalUrl {
    type Err = InvalidUrl;
    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        Self::parse(text)
    }
}

/// A host name or address as it appears in a canonical URL: lower case, IPv6 in brackets, no port.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Host(Arc<str>);

impl Host {
    /// Returns the address, or `None` for a name.
    pub fn address(&self) -> Option<IpAddr> {
        self.0.trim_matches(['[', ']']).parse().ok()
    }

    /// Whether it is an address, or a name that a name server could know: up to 253 characters, in parts of letters,
    /// digits, hyphens and underscores (RFC 1035 2.3.4). A URL may have other hosts, which lead nowhere.
    pub(crate) fn can_exist(&self) -> bool {
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

/// A scheme, host and port, as they appear at the start of a canonical URL: `https://example.com:8443`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin(Arc<str>);

impl Origin {
    /// The host, without the port.
    pub fn host(&self) -> Host {
        Host(strip_port(authority(&self.0)).into())
    }

    /// Whether its port is the default of its scheme.
    pub(crate) fn has_usual_port(&self) -> bool {
        let authority = authority(&self.0);
        strip_port(authority) == authority
    }

    /// Returns the URL of its robots.txt (RFC 9309 2.3).
    pub fn robots_txt(&self) -> CanonicalUrl {
        CanonicalUrl(format!("{}/robots.txt", self.0).into())
    }
}

/// Returns the address that a URL names literally, if it does: such a host needs no resolver.
pub fn literal_address(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        UrlHost::Ipv4(address) => Some(address.into()),
        UrlHost::Ipv6(address) => Some(address.into()),
        UrlHost::Domain(_) => None,
    }
}

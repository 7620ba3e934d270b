//! One cookie, and the field by which a response sets it.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::{Host, Url};

use super::date;
use crate::time::UnixMs;
use crate::web::url::CanonicalUrl;

/// Maximum length of a name and its value together, in bytes (RFC 6265bis 5.6).
const MAX_PAIR: usize = 4096;

/// Maximum length of the value of an attribute, in bytes; a longer one is ignored.
const MAX_ATTRIBUTE: usize = 1024;

/// Longest lifetime of a cookie, whatever its server asks for.
const MAX_LIFETIME: Duration = Duration::from_secs(400 * 24 * 3600);

/// A cookie in a jar. Its value may be a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cookie {
    /// Its name; empty for a cookie that is a value alone.
    pub name: String,
    /// Its value.
    pub value: String,
    /// The host that set it, or a domain above it.
    pub domain: String,
    /// Whether it is sent to that host alone, and not to those below it.
    #[serde(default)]
    pub host_only: bool,
    /// The start of the paths that it is sent to.
    pub path: String,
    /// Whether it is sent with TLS alone.
    #[serde(default)]
    pub secure: bool,
    /// The instant at which it expires; `None` if its server says nothing of that, and then it lives as long as its
    /// jar.
    #[serde(default)]
    pub expires: Option<UnixMs>,
    /// When it was first set.
    pub created: UnixMs,
}

/// Leaves the value out.
impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=*** ({}{})", self.name, self.domain, self.path)
    }
}

/// A cookie as a response sets it. One that has expired removes the one of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetCookie {
    pub(super) cookie: Cookie,
    pub(super) is_over_tls: bool,
}

impl SetCookie {
    /// Reads the value of a field `Set-Cookie` in the response from `url`. `None` if it is ignored: because it is
    /// malformed, or too long, or is for a domain that the host may not set cookies for.
    pub fn parse(url: &CanonicalUrl, field: &str, now: UnixMs) -> Option<Self> {
        let is_control = |c: char| c.is_ascii_control() && c != '\t';
        if field.contains(is_control) {
            return None;
        }
        let mut parts = field.split(';');
        let pair = parts.next().unwrap_or_default();
        let (name, value) = pair.split_once('=').unwrap_or(("", pair));
        let (name, value) = (trimmed(name), trimmed(value));
        if name.is_empty() && value.is_empty() || name.len() + value.len() > MAX_PAIR {
            return None;
        }
        let url = url.to_url();
        let host = url.host_str()?.to_owned();
        let attributes = Attributes::read(parts, now);
        let is_over_tls = url.scheme() == "https";
        if attributes.secure && !is_over_tls {
            return None;
        }
        let domain = domain_of(attributes.domain, &host)?;
        let cookie = Cookie {
            name: name.to_owned(),
            value: value.to_owned(),
            host_only: domain.is_none(),
            domain: domain.unwrap_or(host),
            path: attributes.path.map_or_else(|| default_path(&url), str::to_owned),
            secure: attributes.secure,
            expires: attributes.max_age.or(attributes.expires),
            created: now,
        };
        cookie.keeps_its_prefix().then_some(Self { cookie, is_over_tls })
    }
}

impl SetCookie {
    /// Whether it sets or removes the cookie that another one does.
    pub fn replaces(&self, other: &Self) -> bool {
        self.cookie.replaces(&other.cookie)
    }
}

/// The attributes that matter; of several of a name, the last counts.
#[derive(Default)]
struct Attributes<'a> {
    domain: &'a str,
    path: Option<&'a str>,
    secure: bool,
    max_age: Option<UnixMs>,
    expires: Option<UnixMs>,
}

impl<'a> Attributes<'a> {
    fn read(parts: impl Iterator<Item = &'a str>, now: UnixMs) -> Self {
        let mut all = Self::default();
        let latest = now.plus(MAX_LIFETIME);
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (trimmed(name), trimmed(value));
            if value.len() > MAX_ATTRIBUTE {
                continue;
            }
            match name.to_ascii_lowercase().as_str() {
                "domain" => all.domain = value,
                "path" => all.path = Some(value).filter(|path| path.starts_with('/')),
                "secure" => all.secure = true,
                "expires" => all.expires = date::parse(value).map(|at| at.min(latest)).or(all.expires),
                "max-age" => all.max_age = after(value, now).map(|at| at.min(latest)).or(all.max_age),
                _ => {}
            }
        }
        all
    }
}

/// Returns the instant that a `Max-Age` means; `None` if it is no number.
fn after(value: &str, now: UnixMs) -> Option<UnixMs> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match value.starts_with('-') {
        true => Some(UnixMs(0)),
        // One that is too large for a number is later than any instant.
        false => match digits.parse::<u64>().unwrap_or(u64::MAX) {
            0 => Some(UnixMs(0)),
            seconds => Some(now.plus(Duration::from_secs(seconds.min(MAX_LIFETIME.as_secs())))),
        },
    }
}

/// Returns the domain for which a host sets a cookie: `Some(None)` for the host itself, `None` if it may not.
fn domain_of(attribute: &str, host: &str) -> Option<Option<String>> {
    let attribute = attribute.strip_prefix('.').unwrap_or(attribute);
    if attribute.is_empty() {
        return Some(None);
    }
    let domain = match Host::parse(attribute).ok()? {
        Host::Domain(domain) => domain,
        // An address has nothing below it.
        address => return (address.to_string() == host).then_some(None),
    };
    if psl::suffix_str(&domain) == Some(domain.as_str()) {
        return (domain == host).then_some(None);
    }
    is_within(host, &domain).then_some(Some(domain))
}

/// Whether a host is a domain, or below it (RFC 6265bis 5.1.3).
pub(super) fn is_within(host: &str, domain: &str) -> bool {
    let is_name = || host.parse::<std::net::Ipv4Addr>().is_err() && !host.starts_with('[');
    host == domain || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')) && is_name()
}

/// Whether a path is that of a cookie, or below it (RFC 6265bis 5.1.4).
pub(super) fn is_under(path: &str, cookie: &str) -> bool {
    path.strip_prefix(cookie)
        .is_some_and(|rest| rest.is_empty() || cookie.ends_with('/') || rest.starts_with('/'))
}

fn default_path(url: &Url) -> String {
    let path = url.path();
    match path.rfind('/') {
        Some(0) | None => "/".to_owned(),
        Some(at) => path[..at].to_owned(),
    }
}

fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

impl Cookie {
    /// Whether it is what the prefix of its name promises (RFC 6265bis 4.1.3).
    fn keeps_its_prefix(&self) -> bool {
        let begins = |text: &str, prefix: &str| {
            text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        if self.name.is_empty() {
            return !begins(&self.value, "__Secure-") && !begins(&self.value, "__Host-");
        }
        if begins(&self.name, "__Host-") {
            return self.secure && self.host_only && self.path == "/";
        }
        !begins(&self.name, "__Secure-") || self.secure
    }

    /// Whether it replaces another one.
    pub(super) fn replaces(&self, other: &Self) -> bool {
        self.name == other.name
            && self.domain == other.domain
            && self.host_only == other.host_only
            && self.path == other.path
    }

    /// Whether it has expired.
    pub(super) fn is_over(&self, now: UnixMs) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Its size in bytes, as stored.
    pub(super) fn bytes(&self) -> usize {
        self.name.len() + self.value.len() + self.domain.len() + self.path.len() + 40
    }
}

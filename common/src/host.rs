//! What is polite to one server: the name that its schedule is kept under.

use std::fmt;
use std::sync::Arc;

use crate::url::Host;

/// The name of a schedule: a host, a domain whose hosts share one, or `@name` for a group that settings name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostKey(Arc<str>);

impl HostKey {
    /// A schedule of one host.
    pub fn host(host: &Host) -> Self {
        Self(host.as_str().into())
    }

    /// The schedule of a host's registrable domain, by the Public Suffix List; of the host itself where it has none, as
    /// an address or a single label.
    pub fn domain(host: &Host) -> Self {
        let text = host.as_str();
        let domain = if host.is_address() { None } else { psl::domain_str(text) };
        Self(domain.unwrap_or(text).into())
    }

    /// The schedule of all hosts that settings put into the group `name`.
    pub fn group(name: &str) -> Self {
        Self(format!("@{name}").into())
    }

    /// A key as it was written by [`fmt::Display`].
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

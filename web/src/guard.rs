//! Decides what may be requested: by default only the usual ports of the public internet.
//!
//! A page or a name server can point a crawler at its own network, so every hop is checked. Ports, and addresses
//! written in a URL (which no resolver sees), are checked before each request; names are checked when they are
//! resolved, with [`Guard`] as the client's resolver. An HTTP proxy resolves names itself, and they may have no address
//! here, so only names that are private by themselves are refused. A SOCKS proxy is given addresses, which are checked.

use std::fmt::Display;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use moka::sync::Cache;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::settings;
use trawl_common::web::url::literal_address;
use url::Url;

use super::address::is_public;
use super::{machine, resolver};

/// Looks up the addresses of a name.
pub(super) type Lookup = fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

/// Time that the addresses of a name are cached: a request that waits for its slot must connect to the addresses that
/// were checked.
const CACHE_TTL: Duration = Duration::from_secs(30);

/// Maximum number of names in the cache.
const MAX_CACHED_NAMES: u64 = 10_000;

/// Maximum number of addresses of a name; the others are left out.
const MAX_ADDRESSES: usize = 16;

/// Allows or refuses requests according to the settings.
#[derive(Clone, Debug)]
pub struct Guard {
    settings: Arc<settings::Fetch>,
    lookup: Lookup,
    known: Cache<String, Arc<[SocketAddr]>>,
}

/// Suffixes of names for a machine's own network, or known only to its resolver (RFC 6761, 6762, 8375; the rest are
/// common names of private networks).
const PRIVATE_ENDS: [&str; 8] =
    ["localhost", "local", "internal", "home.arpa", "lan", "home", "corp", "intranet"];

/// A request that the settings do not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error(
        "{0} is not a public address, and neither `fetch.allow_private` nor `fetch.allow_networks` allows it"
    )]
    Address(IpAddr),
    #[error("{0} is not a public name, and `fetch.allow_private` does not allow it")]
    Name(String),
    #[error("port {0} is not among `fetch.ports`")]
    Port(u16),
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self::new(Class::Forbidden, refused)
    }
}

/// A name without any address.
#[derive(Debug, thiserror::Error)]
#[error("no address")]
pub(super) struct NoAddress;

impl Guard {
    /// Creates a guard with these settings. As a client's resolver it returns only allowed addresses; ports, and
    /// addresses written in a URL, must be checked before each request ([`Guard::may_ask`]).
    pub fn from_settings(settings: settings::Fetch) -> Self {
        Self::new(settings.into(), resolver::lookup)
    }

    /// Checks whether `url` may be requested, without asking a resolver.
    ///
    /// # Errors
    /// Fails if the port or the address in the URL is not allowed.
    pub fn may_ask(&self, url: &Url) -> Result<(), Failure> {
        Ok(self.check(url)?)
    }

    pub(super) fn new(settings: Arc<settings::Fetch>, lookup: Lookup) -> Self {
        let known = Cache::builder().max_capacity(MAX_CACHED_NAMES).time_to_live(CACHE_TTL).build();
        Self { settings, lookup, known }
    }

    /// Returns the addresses of a name, from the cache or by looking it up.
    pub(super) async fn find(&self, name: &str) -> io::Result<Arc<[SocketAddr]>> {
        if let Some(known) = self.known.get(name) {
            return Ok(known);
        }
        let found = (self.lookup)(name.to_owned()).await?;
        let found: Arc<[SocketAddr]> = found.into_iter().take(MAX_ADDRESSES).collect();
        self.known.insert(name.to_owned(), Arc::clone(&found));
        Ok(found)
    }

    /// Returns the addresses of a name if they are cached.
    pub(super) fn found(&self, name: &str) -> Option<Arc<[SocketAddr]>> {
        self.known.get(name)
    }

    /// Returns the addresses of `url`'s host that are known without a lookup.
    pub(super) fn known_addresses(&self, url: &Url) -> Vec<IpAddr> {
        match literal_address(url) {
            Some(address) => vec![address],
            None => {
                let found = url.domain().and_then(|name| self.found(name));
                found.iter().flat_map(|found| found.iter().map(SocketAddr::ip)).collect()
            }
        }
    }

    /// Checks whether `url` may be requested, without asking a resolver.
    pub(super) fn check(&self, url: &Url) -> Result<(), Refused> {
        self.check_port(url.port_or_known_default().unwrap_or_default())?;
        literal_address(url).map_or(Ok(()), |address| self.check_address(address))
    }

    /// Checks whether a server may be connected to, without asking a resolver.
    pub(super) fn check_server(&self, host: &str, port: u16) -> Result<(), Refused> {
        self.check_port(port)?;
        host.parse().map_or(Ok(()), |address| self.check_address(address))
    }

    /// Returns the allowed addresses of a server other than a web server, such as a database. Connect to these
    /// addresses and not to the name: a second lookup may give other ones.
    ///
    /// # Errors
    /// Fails if the server may not be connected to, or has no address.
    pub async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
        self.check_server(host, port)?;
        let found = match host.parse() {
            Ok(address) => [SocketAddr::new(address, port)].into(),
            Err(_) => self.find(host).await.map_err(not_found)?,
        };
        let allowed = self.filter(&found).map_err(no_address)?;
        Ok(allowed.iter().map(|address| SocketAddr::new(address.ip(), port)).collect())
    }

    /// Returns the allowed addresses of `url`'s host.
    pub(super) async fn allowed(&self, url: &Url) -> Result<Vec<IpAddr>, Failure> {
        if let Some(address) = literal_address(url) {
            self.check_address(address)?;
            return Ok(vec![address]);
        }
        let found = self.find(url.host_str().unwrap_or_default()).await.map_err(not_found)?;
        let allowed = self.filter(&found).map_err(no_address)?;
        Ok(allowed.iter().map(SocketAddr::ip).collect())
    }

    /// Checks by its name alone whether a `proxy` that resolves names may be asked for `url`'s host. The proxy decides
    /// about the addresses.
    pub(super) fn check_public_name(&self, url: &Url, proxy: &str) -> Result<(), Refused> {
        let Some(name) = url.domain().map(|name| name.trim_end_matches('.')) else { return Ok(()) };
        let is_private = !name.contains('.')
            || name == proxy
            || PRIVATE_ENDS
                .iter()
                .any(|end| name.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
        if is_private && !self.settings.allow_private { Err(Refused::Name(name.to_owned())) } else { Ok(()) }
    }

    /// Checks that every address of `url`'s host is allowed: a SOCKS proxy may be given any of them.
    pub(super) async fn check_name(&self, url: &Url) -> Result<(), Failure> {
        let Some(name) = url.domain() else { return Ok(()) };
        let found = self.find(name).await.map_err(not_found)?;
        if found.is_empty() {
            return Err(no_name(NoAddress));
        }
        Ok(found.iter().try_for_each(|address| self.check_address(address.ip()))?)
    }

    fn check_port(&self, port: u16) -> Result<(), Refused> {
        let allowed = self.settings.ports.iter().any(|ports| ports.contains(port));
        if allowed { Ok(()) } else { Err(Refused::Port(port)) }
    }

    fn check_address(&self, address: IpAddr) -> Result<(), Refused> {
        let allowed = self.settings.allow_private
            || is_public(address)
            || self.settings.allow_networks.iter().any(|network| network.contains(address));
        if allowed { Ok(()) } else { Err(Refused::Address(address)) }
    }

    /// Returns the allowed addresses among `found`. If there are none, the error names a refused address, or is `None`
    /// if `found` is empty.
    fn filter(&self, found: &[SocketAddr]) -> Result<Vec<SocketAddr>, Option<Refused>> {
        let allowed: Vec<_> =
            found.iter().copied().filter(|found| self.check_address(found.ip()).is_ok()).collect();
        match (allowed.is_empty(), found.first()) {
            (false, _) => Ok(allowed),
            (true, Some(refused)) => Err(Some(Refused::Address(refused.ip()))),
            (true, None) => Err(None),
        }
    }
}

impl Resolve for Guard {
    /// Returns the allowed addresses of a name. The client connects to these very addresses, so a different answer to a
    /// second lookup has no effect.
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let found = guard.find(name.as_str()).await?;
            match guard.filter(&found) {
                Ok(allowed) => Ok(Box::new(allowed.into_iter()) as Addrs),
                Err(Some(refused)) => Err(refused.into()),
                Err(None) => Err(NoAddress.into()),
            }
        })
    }
}

/// Converts an error of a lookup: either the name has no address, or this machine cannot look up names.
fn not_found(error: io::Error) -> Failure {
    machine::failure(&error, &[]).unwrap_or_else(|| no_name(error))
}

/// The failure of a name that has no allowed address, or none at all.
fn no_address(refused: Option<Refused>) -> Failure {
    refused.map_or_else(|| no_name(NoAddress), Failure::from)
}

/// The failure of a name without an address.
fn no_name(error: impl Display) -> Failure {
    Failure::new(Class::Dns, error)
}

/// The resolver of a client with a proxy. The proxy's own name may lead to any address because the operator chose it. A
/// page on that name is refused earlier, by [`Guard::check_name`].
pub(super) struct BehindProxy {
    pub(super) guard: Guard,
    /// The proxy's host.
    pub(super) proxy: String,
}

impl Resolve for BehindProxy {
    fn resolve(&self, name: Name) -> Resolving {
        if name.as_str() != self.proxy {
            return self.guard.resolve(name);
        }
        let found = (self.guard.lookup)(name.as_str().to_owned());
        Box::pin(async move { Ok(Box::new(found.await?.into_iter()) as Addrs) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(settings: settings::Fetch) -> Guard {
        Guard::new(settings.into(), resolver::lookup)
    }

    #[test]
    fn a_setting_allows_all_addresses_and_another_some() {
        let check = |settings, address: &str| guard(settings).check_address(address.parse().unwrap()).is_ok();
        let all = settings::Fetch { allow_private: true, ..settings::Fetch::default() };
        let some = || settings::Fetch {
            allow_networks: vec!["10.1.0.0/16".parse().unwrap()],
            ..settings::Fetch::default()
        };
        assert!(check(all, "127.0.0.1"));
        assert!(check(some(), "10.1.2.3") && check(some(), "8.8.8.8"));
        assert!(!check(some(), "10.2.0.1") && !check(some(), "::ffff:10.1.2.3"));
    }

    #[test]
    fn of_a_names_addresses_the_public_ones_remain() {
        let guard = guard(settings::Fetch::default());
        let address = |text: &str| SocketAddr::new(text.parse().unwrap(), 0);
        let mixed = vec![address("10.0.0.1"), address("8.8.8.8")];
        assert_eq!(guard.filter(&mixed).unwrap(), [address("8.8.8.8")]);
        let reason = guard.filter(&[address("10.0.0.1")]).unwrap_err().unwrap().to_string();
        assert!(reason.starts_with("10.0.0.1 is not a public address"), "{reason}");
        assert_eq!(guard.filter(&[]), Err(None));
    }
}

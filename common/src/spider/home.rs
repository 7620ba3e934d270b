//! The hosts to which the header fields and cookies of a spider may go.

use std::collections::BTreeSet;

use super::domains;
use super::start::Start;
use crate::web::url::{CanonicalUrl, Host};

/// The hosts that a spider is for: those of `allowed_domains`, or if that allows any, those of `[start]`. A host
/// does not become one because a page links or redirects to it; nor does another port of such a host, which may
/// belong to someone else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    domains: Vec<String>,
    hosts: BTreeSet<Host>,
    /// The allowed services, each as whether it uses TLS, and its port.
    services: BTreeSet<(bool, u16)>,
}

impl Home {
    /// Creates the home of a spider with this `[start]` and these `allowed_domains`.
    pub(super) fn of(start: &Start, allowed_domains: &[String]) -> Self {
        let Start { sitemaps, urls, robots } = start;
        let start = [sitemaps, urls, robots].into_iter().flatten();
        let start: Vec<_> = start.filter_map(|url| CanonicalUrl::parse(url).ok()).collect();
        let is_any = domains::allow_any(allowed_domains);
        Self {
            domains: if is_any { Vec::new() } else { allowed_domains.to_vec() },
            hosts: start.iter().filter(|_| is_any).map(CanonicalUrl::host).collect(),
            services: services(&start),
        }
    }

    /// Returns whether `url` is in it.
    pub fn has(&self, url: &CanonicalUrl) -> bool {
        let host = url.host();
        let is_ours = self.hosts.contains(&host) || self.domains.iter().any(|domain| host.is_within(domain));
        is_ours && self.services.contains(&service(url))
    }

    /// Returns whether there are no such hosts.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.domains.is_empty()
    }
}

const HTTP: (bool, u16) = (false, 80);
const HTTPS: (bool, u16) = (true, 443);

fn service(url: &CanonicalUrl) -> (bool, u16) {
    let url = url.to_url();
    (url.scheme() == "https", url.port_or_known_default().unwrap_or_default())
}

/// Returns the services that a spider starts at. TLS is added if it starts at plain HTTP on the usual port, or
/// nowhere.
fn services(start: &[CanonicalUrl]) -> BTreeSet<(bool, u16)> {
    let mut services: BTreeSet<_> = start.iter().map(service).collect();
    if services.is_empty() || services.contains(&HTTP) {
        services.insert(HTTPS);
    }
    services
}

//! The hosts to which a spider's header fields and cookies may be sent.

use std::collections::BTreeSet;

use super::domains;
use super::start::Start;
use crate::web::url::{CanonicalUrl, Host};

/// The hosts that a spider is for: those of `allowed_domains`, or if that allows any, those of `[start]`. Links and
/// redirects do not add hosts, and another port of such a host does not belong to it: it may be somebody else's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    domains: Vec<String>,
    hosts: BTreeSet<Host>,
    /// Pairs of whether TLS is used, and the port.
    services: BTreeSet<(bool, u16)>,
}

impl Home {
    /// Creates the home of a spider with this `[start]` and these `allowed_domains`.
    pub(super) fn new(start: &Start, allowed_domains: &[String]) -> Self {
        let Start { sitemaps, urls, robots, requests, csv, tasks: _ } = start;
        let requests = requests.iter().map(|request| &request.url);
        let start = [sitemaps, urls, robots].into_iter().flatten().chain(requests).map(String::as_str);
        let start = start.chain(csv.iter().map(|csv| csv.request.url()));
        let start: Vec<_> = start.filter_map(|url| CanonicalUrl::parse(url).ok()).collect();
        let is_any = domains::allow_any(allowed_domains);
        Self {
            domains: if is_any { Vec::new() } else { allowed_domains.to_vec() },
            hosts: start.iter().filter(|_| is_any).map(CanonicalUrl::host).collect(),
            services: services(&start),
        }
    }

    /// Whether `url` belongs to it.
    pub fn has(&self, url: &CanonicalUrl) -> bool {
        let host = url.host();
        let is_ours = self.hosts.contains(&host) || self.domains.iter().any(|domain| host.is_within(domain));
        is_ours && self.services.contains(&service(url))
    }

    /// Whether there are no such hosts.
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

/// Returns the services of the start URLs, and TLS if they use the default port without it, or if there are none.
fn services(start: &[CanonicalUrl]) -> BTreeSet<(bool, u16)> {
    let mut services: BTreeSet<_> = start.iter().map(service).collect();
    if services.is_empty() || services.contains(&HTTP) {
        services.insert(HTTPS);
    }
    services
}

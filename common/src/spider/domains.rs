//! `allowed_domains` of a spider.

use std::collections::HashSet;

use crate::web::url::Host;

/// The allowed domains, indexed for looking up many hosts.
pub(super) struct Domains<'a> {
    all: HashSet<&'a str>,
    is_any: bool,
}

impl<'a> Domains<'a> {
    pub(super) fn new(domains: &'a [String]) -> Self {
        Self { all: domains.iter().map(String::as_str).collect(), is_any: allow_any(domains) }
    }

    /// Returns whether `host` is in one of them.
    pub(super) fn allow(&self, host: &str) -> bool {
        let parents = host.match_indices('.').map(|(at, _)| &host[at + 1..]);
        self.is_any || std::iter::once(host).chain(parents).any(|name| self.all.contains(name))
    }
}

/// Returns whether `host` is in one of `domains`.
pub(super) fn allow(domains: &[String], host: &Host) -> bool {
    allow_any(domains) || domains.iter().any(|domain| host.is_within(domain))
}

/// Returns whether any host is allowed: `*` is one of `domains`, or there are none.
pub(super) fn allow_any(domains: &[String]) -> bool {
    domains.is_empty() || domains.iter().any(|domain| domain == "*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_hosts_are_looked_up_as_one_is() {
        for domains in [vec![], vec!["*"], vec!["example.com", "a.b.example.org", "1.2.3.4"]] {
            let domains: Vec<String> = domains.into_iter().map(str::to_owned).collect();
            for host in
                ["example.com", "www.example.com", "notexample.com", "b.example.org", "1.2.3.4", "com"]
            {
                let url: crate::web::url::CanonicalUrl = format!("http://{host}/").parse().unwrap();
                let host = url.host();
                assert_eq!(Domains::new(&domains).allow(&host.to_string()), allow(&domains, &host), "{host}");
            }
        }
    }
}

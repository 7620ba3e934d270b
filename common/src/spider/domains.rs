//! `allowed_domains` of a spider.

use crate::web::url::Host;

/// Whether `host` is in one of `domains`.
pub(super) fn allow(domains: &[String], host: &Host) -> bool {
    allow_any(domains) || domains.iter().any(|domain| host.is_within(domain))
}

/// Whether any host is allowed: `*` is one of `domains`, or there are none.
pub(super) fn allow_any(domains: &[String]) -> bool {
    domains.is_empty() || domains.iter().any(|domain| domain == "*")
}

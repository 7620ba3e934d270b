//! Reasons why a host is not requested.

use std::collections::BTreeSet;

use crate::frontier::crawl::HostStats;
use crate::ports::{HostBackoff, HostState};
use crate::settings::Politeness;
use crate::time::UnixMs;
use crate::web::host::HostKey;
use crate::web::url::CanonicalUrl;

/// Returns those of a crawl's hosts that are in a back-off or blocked. `states` has all known hosts.
pub fn not_asked<'a>(
    states: &[HostState],
    hosts: impl Iterator<Item = &'a HostStats>,
    politeness: &Politeness,
    now: UnixMs,
) -> Vec<String> {
    let key = |stats: &HostStats| {
        let url = CanonicalUrl::parse(&format!("http://{}/", stats.host)).ok()?;
        Some(politeness.host_policy(&url.host()).key)
    };
    let keys: BTreeSet<HostKey> = hosts.filter_map(key).collect();
    let states = states.iter().filter(|state| keys.contains(&state.key));
    states.filter_map(|state| keeps_waiting(state, now)).collect()
}

/// The words for a host in a back-off.
pub(super) const LEFT_ALONE: &str = "is left alone until";

/// Describes why the host is not to be requested now, if that is so.
pub(super) fn keeps_waiting(host: &HostState, now: UnixMs) -> Option<String> {
    let HostState { key, blocked, backoff, .. } = host;
    match (blocked, backoff) {
        (Some(_), _) => Some(format!("{key} is blocked: `trawl hosts unblock {key}` lifts that")),
        (None, Some(HostBackoff { until, status: 0, .. })) if *until > now => {
            Some(format!("{key} redirects to a ban and {LEFT_ALONE} {until}"))
        }
        (None, Some(HostBackoff { until, status, .. })) if *until > now => {
            Some(format!("{key} answered {status} and {LEFT_ALONE} {until}"))
        }
        _ => None,
    }
}

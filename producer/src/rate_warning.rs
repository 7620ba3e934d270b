//! Warns about hosts that cannot be asked for all their URLs before these expire.

use std::collections::HashMap;
use std::time::Duration;

use trawl_common::politeness::gcra::Pace;
use trawl_common::settings::{HostPolicy, Politeness};
use trawl_common::text::{count, counted};
use trawl_common::web::host::HostKey;
use trawl_common::web::url::Host;

/// Maximum number of hosts to count: a crawl of more hosts has few URLs on each.
const MAX_HOSTS: usize = 100_000;

/// The number of URLs of each host, by the time that they may wait.
#[derive(Debug, Default)]
pub(crate) struct RateWarnings(HashMap<Host, Counts>);

/// The number of URLs, by the time that they may wait.
type Counts = Vec<(Duration, u64)>;

/// A host whose URLs take longer than they may wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Overload {
    pub(crate) host: HostKey,
    pub(crate) urls: u64,
    pub(crate) needs: Duration,
    pub(crate) ttl: Duration,
    pub(crate) expiring: u64,
}

impl RateWarnings {
    pub(crate) fn add(&mut self, host: Host, ttl: Duration) {
        if self.0.len() >= MAX_HOSTS && !self.0.contains_key(&host) {
            return;
        }
        let counts = self.0.entry(host).or_default();
        match counts.iter_mut().find(|(known, _)| *known == ttl) {
            Some((_, count)) => *count += 1,
            None => counts.push((ttl, 1)),
        }
    }

    /// Returns the hosts with more URLs than can be requested in time, the worst first. Hosts that share a
    /// rate are combined.
    pub(crate) fn overloads(&self, politeness: &Politeness) -> Vec<Overload> {
        let mut by_key: HashMap<HostKey, (Pace, Counts)> = HashMap::new();
        for (host, counts) in &self.0 {
            let HostPolicy { key, pace, .. } = politeness.host_policy(host);
            by_key.entry(key).or_insert_with(|| (pace, Vec::new())).1.extend(counts);
        }
        let overload = |(key, (pace, counts)): (_, (_, Counts))| overload(key, &counts, &pace);
        let mut found: Vec<Overload> = by_key.into_iter().filter_map(overload).collect();
        found.sort_by(|a, b| b.expiring.cmp(&a.expiring).then_with(|| a.host.cmp(&b.host)));
        found
    }
}

/// Returns the overload of a host, if there is one. All URLs that may wait for a time or less have to be
/// requested within that time.
fn overload(host: HostKey, counts: &[(Duration, u64)], pace: &Pace) -> Option<Overload> {
    if pace.interval.is_zero() {
        return None;
    }
    let of = |ttl: Duration| {
        let urls: u64 = counts.iter().filter(|(other, _)| *other <= ttl).map(|(_, count)| count).sum();
        let asked = (ttl.as_nanos() / pace.interval.as_nanos()) as u64 + u64::from(pace.burst);
        let needs = pace.interval.saturating_mul(u32::try_from(urls).unwrap_or(u32::MAX));
        Overload { host: host.clone(), urls, needs, ttl, expiring: urls.saturating_sub(asked) }
    };
    counts.iter().map(|(ttl, _)| of(*ttl)).filter(|overload| overload.expiring > 0).max_by_key(|o| o.expiring)
}

impl std::fmt::Display for Overload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { host, urls, needs, ttl, expiring } = self;
        write!(
            f,
            "{host}: {} take {} at its rate and may wait for {}, so about {} will expire: \
             raise politeness.rate, or the ttl in [[route]]",
            counted(*urls, "URL"),
            whole(*needs),
            whole(*ttl),
            count(*expiring),
        )
    }
}

/// Formats a duration in words, to the second.
pub(crate) fn whole(time: Duration) -> String {
    let seconds = time.as_secs();
    let parts =
        [(seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let shown =
        parts.iter().filter(|(count, _)| *count > 0).take(2).map(|(count, unit)| format!("{count}{unit}"));
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() { "0s".to_owned() } else { shown.join(" ") }
}

#[cfg(test)]
mod tests {
    use trawl_common::politeness::rate::Rate;
    use trawl_common::settings::Share;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn host(name: &str) -> Host {
        trawl_common::web::url::CanonicalUrl::parse(&format!("http://{name}/")).unwrap().host()
    }

    fn loaded(count: u64) -> Vec<Overload> {
        let mut workload = RateWarnings::default();
        (0..count).for_each(|_| workload.add(host("slow.example"), HOUR));
        workload.add(host("other.example"), HOUR);
        workload.overloads(&Politeness::default())
    }

    #[test]
    fn a_host_that_can_be_asked_in_time_is_not_mentioned() {
        assert_eq!(loaded(3_600), []);
    }

    #[test]
    fn a_host_that_cannot_is_reported_with_the_arithmetic() {
        let message: Vec<String> = loaded(20_000).iter().map(ToString::to_string).collect();
        assert_eq!(message.len(), 1);
        assert!(
            message[0].starts_with(
                "slow.example: 20,000 URLs take 5h 33m at its rate and may wait for 1h, so about 16,399 will expire"
            ),
            "{message:?}"
        );
    }

    #[test]
    fn hosts_that_share_a_rate_are_reported_as_one() {
        let mut workload = RateWarnings::default();
        (0..2_000).for_each(|_| workload.add(host("a.shop.example"), HOUR));
        (0..2_000).for_each(|_| workload.add(host("b.shop.example"), HOUR));
        let by_domain = Politeness { share: Share::Domain, ..Politeness::default() };
        let found = workload.overloads(&by_domain);
        assert_eq!((found.len(), found[0].host.as_str(), found[0].urls), (1, "shop.example", 4_000));
        assert_eq!(workload.overloads(&Politeness::default()), []);
        let unlimited = Politeness { rate: Rate::Unlimited, ..by_domain };
        assert_eq!(workload.overloads(&unlimited), []);
    }

    #[test]
    fn what_may_wait_for_less_counts_too() {
        let mut workload = RateWarnings::default();
        (0..3_000).for_each(|_| workload.add(host("slow.example"), HOUR));
        (0..1_000).for_each(|_| workload.add(host("slow.example"), HOUR / 2));
        let found = workload.overloads(&Politeness::default());
        assert_eq!((found[0].urls, found[0].ttl, found[0].expiring), (4_000, HOUR, 399));
    }
}

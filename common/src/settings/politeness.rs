//! `[politeness]`: the rates and limits of requests to hosts.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration;
use crate::politeness::gcra::Pace;
use crate::politeness::rate::{Rate, Unit};
use crate::politeness::robots::RobotsKey;
use crate::text::printable;
use crate::web::host::HostKey;
use crate::web::url::{CanonicalUrl, Host, Origin};

/// Default limit of requests in flight to a host with a rate. If the rate starts more in a second, that number is
/// the limit, so that a host that answers within a second gets the full rate.
const IN_FLIGHT: u32 = 8;

/// `[politeness]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Politeness {
    /// The rate of requests to one host, by all workers together.
    pub rate: Rate,
    /// The rate of requests to one address that serves more than 50 recently requested hosts, by all workers
    /// together.
    pub address_rate: Rate,
    /// Number of requests that may follow each other without a gap after a quiet time.
    pub burst: u32,
    /// Maximum number of requests in flight to one host, from all workers together; 0 for no limit. If it is not
    /// set, a host with a rate has eight, or as many as the rate starts in a second, and one without a rate has no
    /// limit.
    pub concurrency: Option<u32>,
    /// Whether robots.txt is obeyed.
    pub robots: bool,
    /// The scope of one robots.txt.
    pub robots_for: RobotsFor,
    /// Maximum delay between two requests that a robots.txt can ask for.
    #[serde(with = "duration")]
    pub max_crawl_delay: Duration,
    /// The back-off after a 429 or 503 without `Retry-After`. It doubles with each such answer in a row.
    #[serde(with = "duration")]
    pub backoff: Duration,
    /// Maximum back-off, whatever the host asks for. After it, one request is tried.
    #[serde(with = "duration")]
    pub max_backoff: Duration,
    /// The scope of one rate.
    pub share: Share,
    /// Exceptions for some hosts; the first that matches applies.
    #[serde(default)]
    pub host: Vec<HostRule>,
}

/// `politeness.share`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Share {
    /// Each host has a rate of its own.
    Host,
    /// All hosts of a registrable domain (of `example.co.uk`, by the Public Suffix List) share one.
    Domain,
}

/// `politeness.robots_for`
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum RobotsFor {
    /// Each scheme and port of a host has its own (RFC 9309 2.3).
    Origin,
    /// The usual ports of a host, 80 and 443, share one, and all its other ports share one: the one that is
    /// requested first.
    Host,
}

/// `[[politeness.host]]`: exceptions for some hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostRule {
    /// The hosts, including their subdomains.
    pub host: Vec<String>,
    /// Overrides `politeness.rate`.
    pub rate: Option<Rate>,
    /// Overrides `politeness.burst`.
    pub burst: Option<u32>,
    /// Overrides `politeness.concurrency`.
    pub concurrency: Option<u32>,
    /// Overrides `politeness.robots`.
    pub robots: Option<bool>,
    /// A group name: all hosts of a group share one rate, because they share one server.
    pub group: Option<String>,
}

/// The politeness settings for one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPolicy {
    /// The key of its schedule, which other hosts may share.
    pub key: HostKey,
    /// The rate, and the number of requests at once.
    pub pace: Pace,
    /// Whether its robots.txt is obeyed.
    pub robots: bool,
}

impl Politeness {
    /// Returns the key of the robots.txt that applies to `origin`.
    pub fn robots_key(&self, origin: &Origin) -> RobotsKey {
        match self.robots_for {
            RobotsFor::Origin => RobotsKey::origin(origin),
            RobotsFor::Host => RobotsKey::host(origin),
        }
    }

    /// Parses the name of a schedule as a person writes it: a host, any URL of it, or `@NAME` for a group of these
    /// settings.
    pub fn host_key(&self, text: &str) -> Result<HostKey, NoHost> {
        if let Some(name) = text.strip_prefix('@') {
            let is_group = self.host.iter().any(|rule| rule.group.as_deref() == Some(name));
            return match is_group {
                true => Ok(HostKey::group(name)),
                false => Err(NoHost(format!("{} is no group of [[politeness.host]]", shown(text)))),
            };
        }
        let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}/") };
        match CanonicalUrl::parse(&url) {
            Ok(url) if url.host().can_exist() => Ok(self.host_policy(&url.host()).key),
            Ok(_) => Err(NoHost(format!("{} is no host: write one as www.example.com", shown(text)))),
            Err(reason) => Err(NoHost(format!("{} is no host: {reason}", shown(text)))),
        }
    }

    /// Returns the policy for `host`.
    pub fn host_policy(&self, host: &Host) -> HostPolicy {
        let fits = |rule: &&HostRule| rule.host.iter().any(|domain| host.is_within(domain));
        let rule = self.host.iter().find(fits);
        let rate = rule.and_then(|rule| rule.rate).unwrap_or(self.rate);
        let burst = rule.and_then(|rule| rule.burst).unwrap_or(self.burst);
        let concurrency = rule.and_then(|rule| rule.concurrency).or(self.concurrency);
        let concurrency = concurrency.unwrap_or_else(|| most_in_flight(rate));
        let key = match (rule.and_then(|rule| rule.group.as_deref()), self.share) {
            (Some(group), _) => HostKey::group(group),
            (None, Share::Host) => HostKey::host(host),
            (None, Share::Domain) => HostKey::domain(host),
        };
        HostPolicy {
            key,
            pace: Pace { interval: rate.interval().unwrap_or_default(), burst: burst.max(1), concurrency },
            robots: rule.and_then(|rule| rule.robots).unwrap_or(self.robots),
        }
    }
}

/// The error for a text that names no host and no group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoHost(String);

fn shown(text: &str) -> String {
    format!("`{}`", printable(text, 200))
}

/// Returns the maximum number of requests in flight that follows from a rate alone.
fn most_in_flight(rate: Rate) -> u32 {
    let in_a_second = |interval: Duration| (1.0 / interval.as_secs_f64()).ceil() as u32;
    rate.interval().map_or(0, |interval| in_a_second(interval).max(IN_FLIGHT))
}

impl Default for Politeness {
    fn default() -> Self {
        Self {
            rate: Rate::Limited { count: 60, per: Unit::Minute },
            address_rate: Rate::Limited { count: 50, per: Unit::Second },
            burst: 1,
            concurrency: None,
            robots: true,
            robots_for: RobotsFor::Origin,
            max_crawl_delay: Duration::from_secs(60),
            backoff: Duration::from_secs(30),
            max_backoff: Duration::from_secs(3_600),
            share: Share::Host,
            host: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(politeness: &Politeness, host: &str) -> HostPolicy {
        politeness.host_policy(&CanonicalUrl::parse(&format!("http://{host}/")).unwrap().host())
    }

    #[test]
    fn the_first_rule_that_fits_decides_and_what_it_leaves_out_stays() {
        let rule = |host: &str, burst| HostRule {
            host: vec![host.to_owned()],
            burst: Some(burst),
            ..HostRule::default()
        };
        let rules = vec![rule("slow.example.com", 2), rule("example.com", 3)];
        let politeness = Politeness { host: rules, ..Politeness::default() };
        let burst = |host| policy(&politeness, host).pace.burst;
        assert_eq!(["a.slow.example.com", "www.example.com", "example.org"].map(burst), [2, 3, 1]);
        assert_eq!(policy(&politeness, "slow.example.com").pace.interval, Duration::from_secs(1));
    }

    #[test]
    fn a_host_without_a_rate_has_any_number_of_requests_in_flight_unless_settings_say_otherwise() {
        let in_flight = |politeness: &Politeness| policy(politeness, "example.com").pace.concurrency;
        let unlimited = Politeness { rate: Rate::Unlimited, ..Politeness::default() };
        let few = Politeness { concurrency: Some(3), ..unlimited.clone() };
        let quick =
            Politeness { rate: Rate::Limited { count: 500, per: Unit::Second }, ..Politeness::default() };
        assert_eq!(
            [Politeness::default(), quick, unlimited, few].map(|politeness| in_flight(&politeness)),
            [IN_FLIGHT, 500, 0, 3]
        );
    }

    #[test]
    fn hosts_share_a_rate_by_domain_or_by_name() {
        let rule = HostRule {
            host: vec!["a.example".to_owned(), "b.example".to_owned()],
            group: Some("cdn".to_owned()),
            ..HostRule::default()
        };
        let politeness = Politeness { share: Share::Domain, host: vec![rule], ..Politeness::default() };
        let key = |host| policy(&politeness, host).key.to_string();
        let hosts =
            ["www.bbc.co.uk", "news.bbc.co.uk", "10.1.2.3", "[::1]", "x.a.example", "b.example", "localhost"];
        let keys = ["bbc.co.uk", "bbc.co.uk", "10.1.2.3", "[::1]", "@cdn", "@cdn", "localhost"];
        assert_eq!(hosts.map(key), keys);
        assert_eq!(policy(&Politeness::default(), "www.bbc.co.uk").key.to_string(), "www.bbc.co.uk");
    }

    #[test]
    fn a_host_is_named_by_itself_by_a_url_or_by_its_group() {
        let rule = HostRule { group: Some("cdn".to_owned()), ..HostRule::default() };
        let politeness = Politeness { host: vec![rule], ..Politeness::default() };
        let key = |text| politeness.host_key(text).unwrap().to_string();
        for text in ["Example.com", "https://example.com:8443/a?b", "example.com:80"] {
            assert_eq!(key(text), "example.com");
        }
        assert_eq!(key("@cdn"), "@cdn");
        for same in ["[::1]", "10.1.2.3", "localhost", "a_b.example", "xn--bcher-kva.example"] {
            assert_eq!(key(same), same);
        }
        let long = format!("{}.example", "a".repeat(64));
        for wrong in
            ["no host", "@cnd", "", "@", "*", "..", ".", "a..b", "-*-", "a,b", "*.example.com", "x'y", &long]
        {
            assert!(politeness.host_key(wrong).is_err(), "{wrong}");
        }
    }
}

//! Routing: the lane that a URL takes, and the time that it is worth fetching.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration;
use crate::frontier::lane::Lane;
use crate::web::url::{CanonicalUrl, Host};

/// A routing rule. The first whose `when` matches applies; a URL that no rule matches goes to the bulk lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The condition; without one, the rule applies to everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    /// The lane.
    #[serde(deserialize_with = "Lane::of_urls")]
    pub lane: Lane,
    /// The time that the URL is worth fetching; without it, as long as politeness makes it wait.
    #[serde(default, with = "duration::optional", skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Duration>,
}

/// A rule's condition. It holds when any one entry does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// Domains; their subdomains count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<String>,
    /// Texts that the URL contains.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub url: Vec<String>,
    /// `changefreq` values of the sitemap entry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changefreq: Vec<String>,
    /// Whether the sitemap entry carries the news extension.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub news: bool,
}

/// Details that a source gives of a URL beside the URL itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints<'a> {
    /// `changefreq` as written in the sitemap.
    pub changefreq: Option<&'a str>,
    /// Whether the entry carries the news extension.
    pub news: bool,
}

/// The route of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routed {
    /// The lane.
    pub lane: Lane,
    /// The time that it is worth fetching, if the rule sets one.
    pub ttl: Option<Duration>,
}

/// Returns the lane and time to live of `url` by the first rule that matches.
pub fn route(rules: &[Rule], url: &CanonicalUrl, hints: Hints<'_>) -> Routed {
    let host = url.host();
    let rule = rules.iter().find(|rule| rule.when.as_ref().is_none_or(|when| when.fits(url, &host, hints)));
    rule.map_or(Routed { lane: Lane::Bulk, ttl: None }, |rule| Routed { lane: rule.lane, ttl: rule.ttl })
}

impl When {
    fn fits(&self, url: &CanonicalUrl, host: &Host, hints: Hints<'_>) -> bool {
        self.host.iter().any(|domain| host.is_within(domain))
            || self.url.iter().any(|part| url.as_str().contains(part))
            || hints.changefreq.is_some_and(|freq| self.changefreq.iter().any(|wanted| wanted == freq))
            || (self.news && hints.news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn routed(url: &str, hints: Hints<'_>) -> (Lane, Option<u64>) {
        let rules = Settings::default().route;
        let routed = route(&rules, &CanonicalUrl::parse(url).unwrap(), hints);
        (routed.lane, routed.ttl.map(|ttl| ttl.as_secs() / 60))
    }

    #[test]
    fn the_shipped_rules_route_as_the_prototype_did_and_only_the_test_services_urls_have_a_deadline() {
        let plain = Hints::default();
        assert_eq!(routed("https://httpbin.org/get", plain), (Lane::Priority, Some(5)));
        assert_eq!(routed("https://example.com/news/1", plain), (Lane::Priority, None));
        assert_eq!(routed("https://example.com/live", plain), (Lane::Priority, None));
        assert_eq!(routed("https://example.com/about", plain), (Lane::Bulk, None));
    }

    #[test]
    fn what_the_sitemap_says_counts_too() {
        let url = "https://example.com/story";
        assert_eq!(routed(url, Hints { news: true, changefreq: None }), (Lane::Priority, None));
        assert_eq!(routed(url, Hints { news: false, changefreq: Some("hourly") }), (Lane::Priority, None));
        assert_eq!(routed(url, Hints { news: false, changefreq: Some("daily") }), (Lane::Bulk, None));
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        assert_eq!(routed("https://httpbin.org/news", Hints::default()), (Lane::Priority, Some(5)));
    }
}

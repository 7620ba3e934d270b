//! `[[route]]`, `[politeness]` and `[retry]`: sections that `trawl.toml` has as well.

use std::time::Duration;

use super::ban::status;
use super::given::Given;
use super::section::Section;
use super::start::domain;
use crate::duration;
use crate::frontier::lane::Lane;
use crate::frontier::route::{Rule, When};
use crate::settings::HostRule;
use crate::spider::{PolitenessOverrides, RetryOverrides};

pub(super) fn route(mut section: Section<'_>) -> Option<Rule> {
    let when = section.within("when", when);
    let lane = section.need("lane", |given| given.one_of(&Lane::OF_URLS.map(|lane| (lane.as_str(), lane))));
    let ttl = section.read("ttl", time);
    section.end();
    Some(Rule { when, lane: lane?, ttl })
}

fn when(mut section: Section<'_>) -> When {
    let text = |given: &Given<'_>| given.words().map(|text| text.value);
    let when = When {
        host: section.all("host", domain),
        url: section.all("url", text),
        changefreq: section.all("changefreq", text),
        news: section.read("news", Given::flag).unwrap_or_default(),
    };
    section.end();
    when
}

fn time(given: &Given<'_>) -> Option<Duration> {
    duration::parse(&given.text()?.value).map_or_else(|error| given.wrong(error), Some)
}

pub(super) fn politeness(mut section: Section<'_>) -> PolitenessOverrides {
    let overrides = PolitenessOverrides {
        rate: section.read("rate", Given::parsed),
        burst: section.read("burst", burst),
        concurrency: section.read("concurrency", concurrency),
        robots: section.read("robots", Given::flag),
        robots_for: section.read("robots_for", Given::variant),
        host: section.all("host", |given| Section::from_given(given).and_then(host)),
    };
    section.end();
    overrides
}

pub(super) fn retry(mut section: Section<'_>) -> RetryOverrides {
    let overrides = RetryOverrides {
        max: section.read("max", |given| given.whole(0)),
        statuses: section.read("statuses", |given| given.all(status)),
        errors: section.read("errors", |given| given.all(Given::variant)),
        backoff: section.read("backoff", time),
    };
    section.end();
    overrides
}

fn host(mut section: Section<'_>) -> Option<HostRule> {
    let rule = HostRule {
        host: section.need("host", |given| given.all(domain)).unwrap_or_default(),
        rate: section.read("rate", Given::parsed),
        burst: section.read("burst", burst),
        concurrency: section.read("concurrency", concurrency),
        robots: section.read("robots", Given::flag),
        group: section.read("group", Given::words).map(|name| name.value),
    };
    section.end();
    Some(rule)
}

fn burst(given: &Given<'_>) -> Option<u32> {
    given.whole(1)
}

fn concurrency(given: &Given<'_>) -> Option<u32> {
    given.whole(0)
}

//! Events of hosts.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::names::CrawlRef;
use crate::time::UnixMs;
use crate::web::host::HostKey;
use crate::web::url::Fingerprint;

/// Maximum number of hosts in one event: some 25 KB of text.
const MAX_HOSTS: usize = 100;

/// The kinds of events of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum HostEventKind {
    /// The host asked for a long back-off (429, 503, `Retry-After`), and was in none.
    Backoff,
    /// An operator blocked it.
    Blocked,
    /// An operator lifted the block.
    Unblocked,
}

/// An event of one host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostNews {
    /// The time.
    pub at: UnixMs,
    /// The host.
    pub host: HostKey,
    /// The kind of event.
    pub kind: HostEventKind,
    /// The crawl that made the request, if known.
    pub crawl: Option<CrawlRef>,
    /// The answer, if the host asked for a back-off.
    pub refusal: Option<Refusal>,
}

/// A host's answer that asks for a back-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    /// The end of the back-off.
    pub until: UnixMs,
    /// The status of its answer; 0 if there was none.
    pub status: u16,
}

/// An event of some hosts, all of one kind and in one crawl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEvent {
    /// The kind of event.
    pub kind: HostEventKind,
    /// The crawl, if known.
    pub crawl: Option<CrawlRef>,
    /// The events by host: one to a hundred, the earliest first.
    news: Vec<HostNews>,
}

impl HostEvent {
    /// Groups events into as few as possible, the oldest first.
    pub fn group(mut news: Vec<HostNews>) -> Vec<Self> {
        news.sort_unstable();
        let mut groups: BTreeMap<_, Vec<HostNews>> = BTreeMap::new();
        for one in news {
            groups.entry((one.kind, one.crawl.clone())).or_default().push(one);
        }
        let event = |kind, crawl: &Option<CrawlRef>, news: &[HostNews]| Self {
            kind,
            crawl: crawl.clone(),
            news: news.to_vec(),
        };
        let mut events: Vec<Self> = groups
            .iter()
            .flat_map(|((kind, crawl), news)| news.chunks(MAX_HOSTS).map(|news| event(*kind, crawl, news)))
            .collect();
        events.sort_by_key(Self::at);
        events
    }

    /// Returns the event of each host.
    pub fn news(&self) -> &[HostNews] {
        &self.news
    }

    /// Returns the time of the first of them.
    pub fn at(&self) -> UnixMs {
        self.news.first().map(|first| first.at).unwrap_or_default()
    }

    /// Returns the name of the event, which is its routing key: `host.backoff`.
    pub fn name(&self) -> String {
        format!("host.{}", self.kind)
    }

    /// Returns an id that every copy of the event has, and no event that names other hosts.
    pub fn id(&self) -> String {
        let named: String = self.news.iter().map(|one| format!("{} {}\n", one.at.0, one.host)).collect();
        format!("{}.{:016x}", self.name(), Fingerprint::from_text(&named).short())
    }
}

impl Serialize for HostEvent {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Body<'a> {
            id: String,
            r#type: String,
            time: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            crawl: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            spider: Option<&'a str>,
            hosts: Vec<One<'a>>,
        }
        let crawl = self.crawl.as_ref();
        Body {
            id: self.id(),
            r#type: self.name(),
            time: self.at().to_string(),
            crawl: crawl.map(|crawl| crawl.id.as_str()),
            spider: crawl.map(|crawl| crawl.spider.as_str()),
            hosts: self.news.iter().map(One::new).collect(),
        }
        .serialize(to)
    }
}

/// One host in the text of an event.
#[derive(Serialize)]
struct One<'a> {
    host: &'a str,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
}

impl<'a> One<'a> {
    fn new(HostNews { at, host, refusal, .. }: &'a HostNews) -> Self {
        Self {
            host: host.as_str(),
            time: at.to_string(),
            until: refusal.map(|refusal| refusal.until.to_string()),
            status: refusal.map(|refusal| refusal.status),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn news(at: u64, host: &str, crawl: Option<&str>) -> HostNews {
        let crawl = crawl.map(|id| CrawlRef { id: id.parse().unwrap(), spider: "docs".parse().unwrap() });
        let refusal = Some(Refusal { until: UnixMs(at + 60_000), status: 429 });
        let kind = HostEventKind::Backoff;
        HostNews { at: UnixMs(at), host: HostKey::from_text(host), kind, crawl, refusal }
    }

    #[test]
    fn an_event_names_the_hosts_that_back_off_until_when_and_in_which_crawl() {
        let events = HostEvent::group(vec![news(1_700_000_000_000, "a.example", Some("c1"))]);
        let body = serde_json::to_value(&events[0]).unwrap();
        for (key, value) in [
            ("type", json!("host.backoff")),
            ("time", json!("2023-11-14T22:13:20.000Z")),
            ("crawl", json!("c1")),
            ("spider", json!("docs")),
        ] {
            assert_eq!(body[key], value, "{key}");
        }
        let host = json!({"host": "a.example", "time": "2023-11-14T22:13:20.000Z",
            "until": "2023-11-14T22:14:20.000Z", "status": 429});
        assert_eq!(body["hosts"], json!([host]));
    }

    #[test]
    fn hosts_of_one_crawl_share_events_of_a_hundred_and_each_is_named_once() {
        let all = (0..250).map(|at| news(at, &format!("h{at}.example"), Some("c1")));
        let events = HostEvent::group(all.chain([news(7, "other.example", None)]).collect());
        let mut sizes: Vec<usize> = events.iter().map(|event| event.news().len()).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [1, 50, 100, 100]);
        assert!(events.windows(2).all(|pair| pair[0].at() <= pair[1].at()));
    }

    #[test]
    fn events_that_name_other_hosts_are_others() {
        let id = |news: Vec<HostNews>| HostEvent::group(news).remove(0).id();
        let [first, second] = [news(1, "a.example", None), news(2, "b.example", None)];
        assert_eq!(id(vec![first.clone(), second.clone()]), id(vec![second.clone(), first.clone()]));
        assert_ne!(id(vec![first.clone(), second]), id(vec![first]));
    }
}

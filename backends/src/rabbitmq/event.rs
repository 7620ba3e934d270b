//! Events, for programs that wait for something to happen.

use lapin::BasicProperties;
use serde::Serialize;
use trawl_common::frontier::crawl::CrawlStats;

use super::names;
use super::publisher::Outgoing;

/// The body of an event, as JSON.
#[derive(Serialize)]
struct Event<'a> {
    /// The same for every copy of one event.
    id: &'a str,
    event: &'a str,
    #[serde(flatten)]
    stats: &'a CrawlStats,
}

/// `crawl.finished` or `crawl.cancelled`, with the crawl's stats. Nobody need listen.
pub(super) fn ended(stats: &CrawlStats) -> Outgoing {
    let event = format!("crawl.{}", stats.status);
    let id = format!("{}.{}", stats.crawl, stats.status);
    // Names and numbers: they always serialise.
    let body = serde_json::to_vec(&Event { id: &id, event: &event, stats }).unwrap_or_default();
    let properties = BasicProperties::default()
        .with_delivery_mode(2)
        .with_content_type("application/json".into())
        .with_message_id(id.into());
    Outgoing { exchange: names::EVENTS, key: event, body, properties, mandatory: false }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use trawl_common::frontier::crawl::{Counts, CrawlState};
    use trawl_common::names::CrawlRef;
    use trawl_common::time::UnixMs;

    use super::*;

    #[test]
    fn every_copy_of_an_event_has_one_id_and_carries_the_stats() {
        let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: "docs".parse().unwrap() };
        let stats = CrawlStats {
            counts: Counts { admitted: 3, done: 3, ..Counts::default() },
            ..CrawlStats::empty(crawl, CrawlState::Finished, UnixMs(0))
        };
        let event = ended(&stats);
        assert_eq!((event.exchange, event.key.as_str()), ("events", "crawl.finished"));
        let body: Value = serde_json::from_slice(&event.body).unwrap();
        assert_eq!(
            (&body["id"], &body["crawl"], &body["done"]),
            (&"c1.finished".into(), &"c1".into(), &3.into())
        );
        assert_eq!(ended(&stats).properties, event.properties);
    }
}

//! Events on the exchange `events`, and the queues that receive them.

use lapin::types::FieldTable;
use lapin::{BasicProperties, ExchangeKind};
use trawl_common::events::{Event, Pattern};
use trawl_common::ports::Result;
use trawl_common::settings::Topology;

use super::arguments::Arguments;
use super::erased::Connection;
use super::layout::Layout;
use super::publisher::Outgoing;
use super::seal::{Purpose, Seal};
use super::topology::Declaring;
use super::{names, passive};

/// Returns an event as a JSON message. It may have no subscriber.
pub(super) fn outgoing(event: &Event, seal: &Seal) -> Outgoing {
    // Names and numbers always serialize.
    let body = serde_json::to_vec(event).unwrap_or_default();
    let mut headers = FieldTable::default();
    seal.sign(Purpose::Event, &body, &mut headers);
    let properties = BasicProperties::default()
        .with_delivery_mode(2)
        .with_content_type("application/json".into())
        .with_message_id(event.id().into())
        .with_headers(headers);
    Outgoing { exchange: names::EVENTS, key: event.name(), body, properties, mandatory: false }
}

/// Declares a subscriber's queue and binds it to the events of `pattern`; in a passive topology, only looks for it.
pub(super) async fn subscriber(
    connection: &Connection,
    layout: &Layout,
    queue: &str,
    pattern: &Pattern,
) -> Result<()> {
    let queues = vec![(queue.to_owned(), layout.events())];
    declare(connection, layout, queues, &[queue], pattern).await
}

/// Declares the queues of webhooks. Each receives every event, because the selection in the settings may change.
pub(super) async fn webhooks(connection: &Connection, layout: &Layout, ids: &[String]) -> Result<()> {
    let fed: Vec<String> = ids.iter().map(|id| names::webhook(id)).collect();
    let fed: Vec<&str> = fed.iter().map(String::as_str).collect();
    let waiting =
        ids.iter().zip(&fed).map(|(id, back)| (names::webhook_waiting(id), layout.webhook_waiting(back)));
    let queues = fed.iter().map(|queue| (String::from(*queue), layout.webhook())).chain(waiting).collect();
    declare(connection, layout, queues, &fed, &Pattern::all()).await
}

/// Declares these queues, and binds those that are `fed` to events of `pattern`.
async fn declare(
    connection: &Connection,
    layout: &Layout,
    queues: Vec<(String, Arguments<'_>)>,
    fed: &[&str],
    pattern: &Pattern,
) -> Result<()> {
    if layout.queues.topology == Topology::Passive {
        passive::complete(connection, layout, queues, |_| true).await?;
        let fed: Vec<_> = fed.iter().map(|queue| (*queue, pattern.as_str())).collect();
        return passive::feed(connection, names::EVENTS, ExchangeKind::Topic, &fed).await;
    }
    let mut declaring = Declaring::on(connection).await?;
    declaring.exchange(names::EVENTS, ExchangeKind::Topic).await?;
    for (name, arguments) in queues {
        declaring.queue(&name, arguments).await?;
    }
    for queue in fed {
        declaring.bind(queue, names::EVENTS, pattern.as_str()).await?;
    }
    declaring.end().await
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use trawl_common::events::CrawlEvent;
    use trawl_common::frontier::crawl::{Counts, CrawlState, CrawlStats};
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
        let event = Event::Crawl(CrawlEvent::ended(stats).unwrap());
        let sent = outgoing(&event, &Seal::default());
        assert_eq!((sent.exchange, sent.key.as_str()), ("events", "crawl.finished"));
        let body: Value = serde_json::from_slice(&sent.body).unwrap();
        assert_eq!(
            (&body["id"], &body["crawl"], &body["done"]),
            (&"c1.finished".into(), &"c1".into(), &3.into())
        );
        assert_eq!(outgoing(&event, &Seal::default()).properties, sent.properties);
    }
}

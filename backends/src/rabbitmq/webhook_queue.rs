//! The queues of webhooks: each holds the undelivered events of one address.
//!
//! A failed delivery waits in a second queue for its time, and comes back from there. So other deliveries never
//! wait for it.

use std::sync::Arc;
use std::time::Duration;

use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Acker, BasicProperties};
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::{self, Queues};

use super::channel::answered;
use super::connection::{Endpoint, failed};
use super::erased::{Connection, Incoming};
use super::layout::Layout;
use super::names;
use super::publisher::{Outgoing, Publisher};
use super::seal::{Author, Purpose, SIGNATURE, Seal};
use super::topology::Topology;

/// The header with the number of failed posts of an event.
const TRIES: &str = "tries";

/// The header with the webhook that an event is for, in a queue that several share.
const WEBHOOK: &str = "webhook";

/// The queues of some webhooks, each with an id.
pub(crate) struct WebhookQueue {
    broker: Arc<Endpoint>,
    topology: Topology,
    publisher: Publisher,
    seal: Seal,
}

impl WebhookQueue {
    /// Creates the queues of the webhooks with these ids, on this broker. Each call connects if it has to.
    pub(crate) fn new(broker: &settings::RabbitMq, queues: &Queues, ids: Arc<[String]>) -> Result<Self> {
        let seal = Seal::new(broker);
        let (broker, layout) = (Arc::new(Endpoint::new(broker)?), Arc::new(Layout::new(queues)?));
        let topology = Topology::Webhooks(layout, ids);
        Ok(Self { publisher: Publisher::new(Arc::clone(&broker), topology.clone()), broker, topology, seal })
    }

    /// Takes the events for the webhook `id`, `at_once` at a time. Events that are not [done](Delivery::done) when
    /// this is dropped come again.
    pub(crate) async fn take(&self, id: &str, at_once: u16) -> Result<Deliveries> {
        let connection = self.broker.open("trawl webhook").await?;
        self.topology.declare(&connection).await?;
        let channel = connection.channel().await?;
        answered(channel.basic_qos(at_once, BasicQosOptions::default())).await.map_err(failed)?;
        let (queue, options) = (names::webhook(id), BasicConsumeOptions::default());
        let coming = channel.consume(&queue, String::new(), options, FieldTable::default()).await?;
        Ok(Deliveries { coming, seal: self.seal.clone(), _connection: connection })
    }

    /// Sends a delivery again after `wait`, with one more try counted. When this returns, that is stored, and the
    /// delivery may be done.
    pub(crate) async fn put_off(&self, id: &str, delivery: &Delivery, wait: Duration) -> Result<()> {
        let mut headers = delivery.headers.clone();
        let tries = delivery.tries.saturating_add(1).to_string();
        headers.insert(TRIES.into(), AMQPValue::LongString(tries.into()));
        if let Some(webhook) = &delivery.webhook {
            headers.insert(WEBHOOK.into(), AMQPValue::LongString(webhook.as_str().into()));
        }
        let properties = properties(headers).with_expiration(wait.as_millis().to_string().into());
        self.send(names::webhook_waiting(id), delivery, properties).await
    }

    /// Sends an event again, for one of the webhooks that share the queue `id`. When this returns, that is stored.
    pub(crate) async fn address(&self, id: &str, delivery: &Delivery, webhook: &str) -> Result<()> {
        let mut headers = delivery.headers.clone();
        headers.insert(WEBHOOK.into(), AMQPValue::LongString(webhook.into()));
        self.send(names::webhook(id), delivery, properties(headers)).await
    }

    async fn send(&self, key: String, delivery: &Delivery, properties: BasicProperties) -> Result<()> {
        let body = delivery.body.clone();
        self.publisher.send([Outgoing { exchange: "", key, body, properties, mandatory: true }]).await
    }
}

fn properties(headers: FieldTable) -> BasicProperties {
    BasicProperties::default()
        .with_delivery_mode(2)
        .with_content_type("application/json".into())
        .with_headers(headers)
}

/// The events for one webhook.
pub(crate) struct Deliveries {
    coming: Incoming,
    seal: Seal,
    /// Closes when dropped.
    _connection: Connection,
}

impl Deliveries {
    /// Waits for the next event. A cancelled call has taken nothing.
    pub(crate) async fn next(&mut self) -> Result<Delivery> {
        match self.coming.next().await {
            Some(delivery) => delivery.map(|delivery| self.read(delivery)).map_err(failed),
            None => {
                Err(Error::new(ErrorKind::Unavailable, "rabbitmq ended the reading of a webhook's queue"))
            }
        }
    }

    fn read(&self, delivery: lapin::message::Delivery) -> Delivery {
        let sent = delivery.properties.headers().clone().unwrap_or_default();
        let text = |name: &str| match sent.inner().get(name) {
            Some(AMQPValue::LongString(text)) => Some(text.to_string()),
            _ => None,
        };
        let tries = text(TRIES).and_then(|tries| tries.parse().ok()).unwrap_or_default();
        let webhook = text(WEBHOOK);
        let mut headers = FieldTable::default();
        if let Some(signature) = sent.inner().get(SIGNATURE) {
            headers.insert(SIGNATURE.into(), signature.clone());
        }
        let is_ours = self.seal.author(Purpose::Event, &delivery.data, &headers) != Author::Stranger;
        Delivery { body: delivery.data, tries, webhook, is_ours, headers, acker: delivery.acker }
    }
}

/// An event, and its number of failed posts.
pub(crate) struct Delivery {
    /// The event as JSON.
    pub(crate) body: Vec<u8>,
    /// Number of failed posts.
    pub(crate) tries: u32,
    /// The webhook that it is for, if several share the queue and that was decided.
    pub(crate) webhook: Option<String>,
    /// Whether it is signed by the fleet, if the fleet has a key.
    pub(crate) is_ours: bool,
    headers: FieldTable,
    acker: Acker,
}

impl Delivery {
    /// Acknowledges it once it is delivered or deferred: it does not come again.
    pub(crate) async fn done(self) -> Result<()> {
        answered(self.acker.ack(BasicAckOptions::default())).await.map(drop).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use trawl_testkit::servers::VirtualHost;

    use super::*;

    #[tokio::test]
    async fn an_event_for_one_of_several_webhooks_stays_that_ones_and_counts_when_it_is_put_off() {
        let vhost = VirtualHost::new().await;
        let broker = settings::RabbitMq { url: vhost.url.clone(), ..settings::RabbitMq::default() };
        let queue = WebhookQueue::new(&broker, &Queues::default(), ["some".to_owned()].into()).unwrap();
        let mut coming = queue.take("some", 4).await.unwrap();
        let properties = properties(FieldTable::default());
        let (key, body) = ("crawl.finished".to_owned(), b"{}".to_vec());
        let event = Outgoing { exchange: names::EVENTS, key, body, properties, mandatory: false };
        queue.publisher.send([event]).await.unwrap();

        let event = coming.next().await.unwrap();
        assert_eq!((event.webhook.as_deref(), event.tries), (None, 0), "it is for all of them");
        queue.address("some", &event, "one").await.unwrap();
        event.done().await.unwrap();
        let delivery = coming.next().await.unwrap();
        assert_eq!((delivery.webhook.as_deref(), delivery.tries), (Some("one"), 0));
        queue.put_off("some", &delivery, Duration::from_millis(10)).await.unwrap();
        delivery.done().await.unwrap();
        let again = coming.next().await.unwrap();
        assert_eq!((again.webhook.as_deref(), again.tries, &again.body[..]), (Some("one"), 1, &b"{}"[..]));
    }
}

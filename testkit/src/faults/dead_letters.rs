//! Reads the messages that the fleet publishes: dead letters, and the event of a crawl's end.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicQosOptions, ExchangeDeclareOptions, QueueBindOptions,
    QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Connection, ConnectionProperties, ExchangeKind};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::ledger::{DeadLetter, End};
use super::scenario::BEFORE;

/// Delay before connecting again.
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The suite's own queue on the exchange `events`.
const EVENTS: &str = "fault-suite.events";

/// The messages read so far.
#[derive(Clone, Default)]
struct Received {
    dead_letters: Arc<Mutex<Vec<DeadLetter>>>,
    ends: Arc<Mutex<Vec<End>>>,
}

/// Reads `failed_urls` and `events` of one broker until dropped, through every fault.
pub struct DeadLetters {
    received: Received,
    _reading: JoinSet<()>,
}

impl DeadLetters {
    /// Reads from the broker at this address, directly: faults that cut the fleet off do not affect it.
    pub fn read(broker: SocketAddr) -> Self {
        let received = Received::default();
        let mut reading = JoinSet::new();
        for what in [What::DeadLetters, What::Events] {
            let received = received.clone();
            reading.spawn(async move {
                loop {
                    // The fleet declares the queue, and servers go and come: all steps are tried again.
                    let _ = read(broker, what, &received).await;
                    sleep(RETRY_DELAY).await;
                }
            });
        }
        Self { received, _reading: reading }
    }

    /// Returns the dead letters so far.
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.received.dead_letters.lock().clone()
    }

    /// Returns the ends of crawls so far, without duplicates.
    pub fn ends(&self) -> BTreeSet<End> {
        self.received.ends.lock().iter().cloned().collect()
    }
}

#[derive(Clone, Copy)]
enum What {
    DeadLetters,
    Events,
}

async fn read(broker: SocketAddr, what: What, received: &Received) -> io::Result<()> {
    let uri = format!("amqp://guest:guest@{broker}/%2f?heartbeat=5");
    let connecting = Connection::connect(&uri, ConnectionProperties::default());
    let connection = timeout(CONNECT_TIMEOUT, connecting).await?.map_err(io::Error::other)?;
    let channel = connection.create_channel().await.map_err(io::Error::other)?;
    consume(&channel, what, received).await.map_err(io::Error::other)
}

async fn consume(channel: &Channel, what: What, received: &Received) -> lapin::Result<()> {
    let queue = match what {
        What::DeadLetters => "failed_urls",
        What::Events => {
            bind_events(channel).await?;
            EVENTS
        }
    };
    channel.basic_qos(200, BasicQosOptions::default()).await?;
    let options = BasicConsumeOptions::default();
    let mut deliveries =
        channel.basic_consume(queue.into(), "fault-suite".into(), options, FieldTable::default()).await?;
    while let Some(delivery) = deliveries.next().await {
        let delivery = delivery?;
        match what {
            What::DeadLetters => received.dead_letters.lock().extend(dead_letter(&delivery)),
            What::Events => received.ends.lock().extend(end(&delivery)),
        }
        delivery.ack(BasicAckOptions::default()).await?;
    }
    Ok(())
}

/// Binds the suite's queue to the exchange. The exchange is trawl's: its existence is only checked, passively.
async fn bind_events(channel: &Channel) -> lapin::Result<()> {
    let look = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
    channel.exchange_declare("events".into(), ExchangeKind::Topic, look, FieldTable::default()).await?;
    let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(EVENTS.into(), options, FieldTable::default()).await?;
    let (key, options) = ("crawl.finished", QueueBindOptions::default());
    channel.queue_bind(EVENTS.into(), "events".into(), key.into(), options, FieldTable::default()).await
}

/// Parses a dead letter. Returns `None` for one of the crawl before.
fn dead_letter(delivery: &Delivery) -> Option<DeadLetter> {
    let url = String::from_utf8_lossy(&delivery.data).into_owned();
    let headers = delivery.properties.headers().as_ref();
    let header = |name: &str| match headers?.inner().get(name) {
        Some(AMQPValue::LongString(text)) => Some(text.to_string()),
        _ => None,
    };
    let reason = header("reason").unwrap_or_else(|| "none".to_owned());
    (header("crawl").as_deref() != Some(BEFORE)).then_some(DeadLetter { url, reason })
}

fn end(delivery: &Delivery) -> Option<End> {
    let event: serde_json::Value = serde_json::from_slice(&delivery.data).ok()?;
    let text = |name: &str| Some(event.get(name)?.as_str()?.to_owned());
    Some(End { id: text("id")?, crawl: text("crawl")?, stats: serde_json::from_value(event.clone()).ok()? })
}

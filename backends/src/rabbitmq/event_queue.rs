//! Subscribers to events: a durable queue for each, which keeps its unread events.

use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicGetOptions, BasicQosOptions, QueueDeleteOptions,
};
use lapin::types::FieldTable;
use trawl_common::events::Pattern;
use trawl_common::names::SubscriberName;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::{self, Queues};

use super::channel::{answered, close};
use super::connection::{Endpoint, failed};
use super::erased::{Channel, Connection, Incoming};
use super::layout::Layout;
use super::{events, names, passive};

/// Number of events sent ahead of the one that is read.
const PREFETCH: u16 = 64;

/// The queues of subscribers.
pub struct EventQueues {
    broker: Endpoint,
    layout: Layout,
}

impl EventQueues {
    /// Creates the access to this broker. Each call connects.
    pub fn new(broker: &settings::RabbitMq, queues: &Queues) -> Result<Self> {
        Ok(Self { broker: Endpoint::new(broker)?, layout: Layout::new(queues)? })
    }

    /// Opens the queue of this name, which is created if it is missing. From now on it receives events of
    /// `pattern`, in addition to those that it was opened for before.
    pub async fn open(&self, name: &SubscriberName, pattern: &Pattern) -> Result<EventQueue> {
        let (queue, connection) = (names::subscriber(name), self.broker.open("trawl events").await?);
        events::subscriber(&connection, &self.layout, &queue, pattern).await?;
        let channel = connection.channel().await?;
        Ok(EventQueue { queue, channel, coming: None, _connection: connection })
    }

    /// Deletes the queue of this name with all its events. Returns whether it existed.
    pub async fn forget(&self, name: &SubscriberName) -> Result<bool> {
        let (queue, connection) = (names::subscriber(name), self.broker.open("trawl events").await?);
        if !passive::exists(&connection, &queue).await? {
            return Ok(false);
        }
        let channel = connection.channel().await?;
        answered(channel.queue_delete(queue.into(), QueueDeleteOptions::default())).await.map_err(failed)?;
        Ok(true)
    }
}

/// The unread events of a subscriber. An event that is received but not [done](EventQueue::done) comes again, to
/// the next one that opens the queue.
pub struct EventQueue {
    queue: String,
    channel: Channel,
    /// The consumer, once somebody waits for events.
    coming: Option<Incoming>,
    /// Closes when dropped.
    _connection: Connection,
}

/// One message of the queue.
pub struct Received {
    /// The event as JSON, unless a stranger has published something else.
    pub body: Vec<u8>,
    tag: u64,
}

impl EventQueue {
    /// Returns the next available event; `None` if there is none.
    pub async fn get(&self) -> Result<Option<Received>> {
        let got =
            answered(self.channel.basic_get(self.queue.clone().into(), BasicGetOptions::default())).await;
        Ok(got.map_err(failed)?.map(|message| received(message.delivery)))
    }

    /// Waits for the next event. A cancelled call has taken nothing.
    pub async fn next(&mut self) -> Result<Received> {
        let coming = match &mut self.coming {
            Some(coming) => coming,
            none => none.insert(consume(&self.channel, &self.queue).await?),
        };
        match coming.next().await {
            Some(delivery) => delivery.map(received).map_err(failed),
            None => {
                let text = format!("rabbitmq ended the reading of the queue {}", self.queue);
                Err(Error::new(ErrorKind::Unavailable, text))
            }
        }
    }

    /// Acknowledges an event: it does not come again.
    pub async fn done(&self, received: &Received) -> Result<()> {
        answered(self.channel.basic_ack(received.tag, BasicAckOptions::default())).await.map_err(failed)
    }

    /// Returns once the broker has received all acknowledgements.
    pub async fn close(self) {
        close(&self.channel).await;
    }
}

async fn consume(channel: &Channel, queue: &str) -> Result<Incoming> {
    answered(channel.basic_qos(PREFETCH, BasicQosOptions::default())).await.map_err(failed)?;
    let options = BasicConsumeOptions::default();
    channel.consume(queue, String::new(), options, FieldTable::default()).await
}

fn received(delivery: Delivery) -> Received {
    Received { tag: delivery.delivery_tag, body: delivery.data }
}

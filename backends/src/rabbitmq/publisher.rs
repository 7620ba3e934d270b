//! Publishing with a window of unconfirmed messages, each of whose confirms is awaited and checked.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{BasicProperties, Confirmation};
use tokio::sync::Mutex;
use trawl_common::metrics;
use trawl_common::ports::{Error, ErrorKind, Result};

use super::channel::answered;
use super::connection::{Endpoint, failed};
use super::erased::{Channel, Connection};
use super::passive;
use super::topology::{self, Topology};

/// Maximum number of unconfirmed messages of one call. A producer runs four calls at once, and beyond some 1,000
/// messages a broker gets slower, not faster.
const WINDOW: usize = 200;
/// Maximum size of the unconfirmed messages in bytes, or one message: an item may have 8 MB.
const WINDOW_BYTES: usize = 32 << 20;

/// Time limit for a confirm; after it, a broker counts as blocked or gone.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(30);

/// One message for the broker.
pub(super) struct Outgoing {
    pub(super) exchange: &'static str,
    pub(super) key: String,
    pub(super) body: Vec<u8>,
    pub(super) properties: BasicProperties,
    /// Whether it is an error if no queue takes it.
    pub(super) mandatory: bool,
}

/// Publishes on a separate connection, which is opened when needed, and again after it broke.
pub(super) struct Publisher {
    broker: Arc<Endpoint>,
    topology: Topology,
    link: Mutex<Option<Link>>,
}

struct Link {
    /// Closes when dropped.
    connection: Connection,
    channel: Channel,
}

impl Publisher {
    pub(super) fn new(broker: Arc<Endpoint>, topology: Topology) -> Self {
        Self { broker, topology, link: Mutex::default() }
    }

    /// Sends all messages, and returns when the broker has confirmed all. After an error any part may be stored.
    ///
    /// After an error the connection is dropped, with everything that it has not yet sent: a blocked one would
    /// pile that up, and a channel that turned to a queue's dead leader goes on refusing for ever (seen on
    /// RabbitMQ 3.10). The next connection declares the queues again, which may be missing.
    pub(super) fn send(&self, outgoing: impl IntoIterator<Item = Outgoing>) -> BoxFuture<'_, Result<()>> {
        let outgoing: Vec<Outgoing> = outgoing.into_iter().collect();
        let sending = async move {
            let channel = self.channel().await?;
            let sent = send_on(&channel, outgoing).await;
            if sent.is_err() {
                self.give_up(&channel).await;
            }
            sent
        };
        sending.boxed()
    }

    /// Returns the maximum time until everything that is parked now has come back.
    pub(super) async fn longest_parked(&self) -> Result<Duration> {
        self.channel().await?;
        match &*self.link.lock().await {
            Some(link) => topology::longest_parked(&link.connection).await,
            None => Err(given_up()),
        }
    }

    /// Returns whether a queue is empty and has no consumer, or does not exist.
    pub(super) async fn is_idle(&self, queue: &str) -> Result<bool> {
        self.channel().await?;
        match &*self.link.lock().await {
            Some(link) => passive::is_idle(&link.connection, queue).await,
            None => Err(given_up()),
        }
    }

    async fn give_up(&self, channel: &Channel) {
        let mut link = self.link.lock().await;
        // Another sender may have opened a new one meanwhile.
        if link.as_ref().is_some_and(|link| *link.channel == **channel) {
            *link = None;
        }
    }

    /// Returns the open channel, or a new one with the topology declared.
    pub(super) async fn channel(&self) -> Result<Channel> {
        let mut link = self.link.lock().await;
        if let Some(open) = link.as_ref().filter(|link| link.channel.status().connected()) {
            return Ok(open.channel.clone());
        }
        *link = None;
        let connection = self.broker.open("trawl publisher").await?;
        self.topology.declare(&connection).await?;
        let channel = connection.channel().await?;
        answered(channel.confirm_select(ConfirmSelectOptions::default())).await.map_err(failed)?;
        *link = Some(Link { connection, channel: channel.clone() });
        Ok(channel)
    }
}

fn given_up() -> Error {
    Error::new(ErrorKind::Unavailable, "rabbitmq: the connection was given up just now")
}

/// Sends all messages on a channel with confirms, and returns when all are confirmed.
pub(super) fn send_on(channel: &Channel, outgoing: Vec<Outgoing>) -> BoxFuture<'_, Result<()>> {
    let sending = async move {
        // Waiting until each is written before the next is sent would cost two context switches for each.
        let mut window = FuturesUnordered::new();
        let mut bytes = 0;
        for message in outgoing {
            let size = message.body.len();
            while window.len() >= WINDOW || bytes + size > WINDOW_BYTES {
                let Some(size) = confirmed_in_time(window.next()).await? else { break };
                bytes -= size?;
            }
            window.push(publish(channel, message));
            bytes += size;
        }
        while let Some(confirmed) = confirmed_in_time(window.next()).await? {
            confirmed?;
        }
        Ok(())
    };
    sending.boxed()
}

/// Sends a message, waits until it is confirmed, and returns its size in bytes.
async fn publish(channel: &Channel, message: Outgoing) -> Result<usize> {
    let Outgoing { exchange, key, body, properties, mandatory } = message;
    let options = BasicPublishOptions { mandatory, ..BasicPublishOptions::default() };
    let publishing = channel.basic_publish(exchange.into(), key.into(), options, &body, properties);
    match publishing.await.map_err(failed)?.await.map_err(failed)? {
        Confirmation::Ack(None) => {
            metrics::confirmed();
            Ok(body.len())
        }
        Confirmation::Ack(Some(returned)) => {
            let text = format!("rabbitmq has no queue for the key {}", returned.routing_key);
            Err(Error::new(ErrorKind::Unavailable, text))
        }
        Confirmation::Nack(_) => Err(Error::new(
            ErrorKind::Unavailable,
            "rabbitmq refused a message: a queue is full or has lost its leader",
        )),
        Confirmation::NotRequested => {
            Err(Error::new(ErrorKind::Corrupt, "rabbitmq does not confirm on this channel"))
        }
    }
}

async fn confirmed_in_time<T>(progress: impl Future<Output = T>) -> Result<T> {
    tokio::time::timeout(CONFIRM_TIMEOUT, progress).await.map_err(|_| {
        let text = format!(
            "rabbitmq confirmed nothing for {} s: is it out of memory or disk?",
            CONFIRM_TIMEOUT.as_secs()
        );
        Error::new(ErrorKind::Unavailable, text)
    })
}

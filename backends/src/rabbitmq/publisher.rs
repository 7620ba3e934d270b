//! Publishing: a window of confirms in flight, each awaited and checked.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{BasicProperties, Channel, Confirmation, Connection, PublisherConfirm};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::warn;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::Queues;

use super::connection::{Broker, failed};
use super::topology;

/// Unconfirmed messages on their way at most; above some 1,000 a broker gets slower, not faster.
const WINDOW: usize = 800;

/// A broker that confirms nothing for so long is blocked or gone.
const PATIENCE: Duration = Duration::from_secs(30);

/// The pause before what was not confirmed is sent again; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// One message for the broker.
pub(super) struct Outgoing {
    pub(super) exchange: &'static str,
    pub(super) key: String,
    pub(super) body: Vec<u8>,
    pub(super) properties: BasicProperties,
}

/// Publishes on a connection of its own, which is opened when it is needed and again when it broke.
pub(super) struct Publisher {
    broker: Arc<Broker>,
    queues: Queues,
    link: Mutex<Option<Link>>,
}

struct Link {
    /// Closes when dropped.
    connection: Connection,
    channel: Channel,
}

impl Publisher {
    pub(super) fn new(broker: Arc<Broker>, queues: Queues) -> Self {
        Self { broker, queues, link: Mutex::default() }
    }

    /// Sends all, and returns when the broker has confirmed all. What it refuses or leaves unconfirmed is sent again
    /// for half a minute, which outlasts the election of a queue's new leader: some may then be stored twice. On an
    /// error any part may be stored.
    pub(super) async fn send(&self, outgoing: impl IntoIterator<Item = Outgoing> + Send) -> Result<()> {
        let mut left: VecDeque<Outgoing> = outgoing.into_iter().collect();
        let deadline = Instant::now() + PATIENCE;
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.send_once(&mut left).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if !error.is_temporary() || Instant::now() + pause > deadline {
                return Err(error);
            }
            warn!(%error, messages = left.len(), retry_in = ?pause, "not confirmed; sending again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Sends what is `left`, and keeps there what was not confirmed.
    async fn send_once(&self, left: &mut VecDeque<Outgoing>) -> Result<()> {
        let channel = self.channel().await?;
        let mut refused = Vec::new();
        let sent = send_in_window(&channel, left, &mut refused).await;
        let mut why = Ok(());
        for (message, error) in refused {
            left.push_back(message);
            why = Err(error);
        }
        sent?;
        if why.is_err() {
            self.replace(&channel).await?;
        }
        why
    }

    /// The open channel, or a new one with the topology declared.
    pub(super) async fn channel(&self) -> Result<Channel> {
        let mut link = self.link.lock().await;
        if let Some(open) = link.as_ref().filter(|link| link.channel.status().connected()) {
            return Ok(open.channel.clone());
        }
        *link = None;
        let connection = self.broker.open("trawl publisher").await?;
        topology::declare(&connection, &self.queues).await?;
        let channel = confirming_channel(&connection).await?;
        *link = Some(Link { connection, channel: channel.clone() });
        Ok(channel)
    }

    /// Puts a new channel in the place of one that refused a message. A channel that turned to a queue's dead leader
    /// before the new one was elected goes on refusing for ever (seen on RabbitMQ 3.10); a new one asks the new leader.
    async fn replace(&self, refusing: &Channel) -> Result<()> {
        let mut link = self.link.lock().await;
        if let Some(link) = link.as_mut().filter(|link| link.channel.id() == refusing.id()) {
            link.channel = confirming_channel(&link.connection).await?;
        }
        Ok(())
    }
}

async fn confirming_channel(connection: &Connection) -> Result<Channel> {
    let channel = connection.create_channel().await.map_err(failed)?;
    channel.confirm_select(ConfirmSelectOptions::default()).await.map_err(failed)?;
    Ok(channel)
}

/// Moves out of `left` what is confirmed, and into `refused` what the broker will not have now. The error is the
/// channel's, and ends it for all.
async fn send_in_window(
    channel: &Channel,
    left: &mut VecDeque<Outgoing>,
    refused: &mut Vec<(Outgoing, Error)>,
) -> Result<()> {
    // The confirms of the first messages of `left`, in their order.
    let mut window: VecDeque<PublisherConfirm> = VecDeque::new();
    loop {
        while window.len() < WINDOW.min(left.len()) {
            window.push_back(publish(channel, &left[window.len()]).await?);
        }
        let Some(oldest) = window.pop_front() else { return Ok(()) };
        let confirmed = confirmed(oldest).await?;
        let message = left.pop_front();
        if let (Err(error), Some(message)) = (confirmed, message) {
            refused.push((message, error));
        }
    }
}

async fn publish(channel: &Channel, message: &Outgoing) -> Result<PublisherConfirm> {
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    let Outgoing { exchange, key, body, properties } = message;
    let publishing =
        channel.basic_publish((*exchange).into(), key.as_str().into(), options, body, properties.clone());
    patiently(publishing).await
}

/// What became of one message; the outer error is the channel's.
async fn confirmed(confirm: PublisherConfirm) -> Result<Result<()>> {
    Ok(match patiently(confirm).await? {
        Confirmation::Ack(None) => Ok(()),
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
    })
}

async fn patiently<T>(call: impl Future<Output = lapin::Result<T>>) -> Result<T> {
    match tokio::time::timeout(PATIENCE, call).await {
        Ok(result) => result.map_err(failed),
        Err(_) => {
            let text = format!(
                "rabbitmq confirmed nothing for {} s: is it out of memory or disk?",
                PATIENCE.as_secs()
            );
            Err(Error::new(ErrorKind::Unavailable, text))
        }
    }
}

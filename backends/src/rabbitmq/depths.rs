//! The lengths of queues, from declaring them passively.

use std::time::Duration;

use lapin::options::QueueDeclareOptions;
use lapin::protocol::AMQPSoftError;
use lapin::types::FieldTable;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use trawl_common::frontier::ladder::RUNGS;
use trawl_common::ports::{Error, ErrorKind, LaneName, Result};
use trawl_common::settings;

use super::channel::{answered, is_soft};
use super::connection::{Endpoint, failed};
use super::erased::{Channel, Connection};
use super::names;

/// Time that an answer is reused, so that many callers cost no more than one.
const CACHE_TTL: Duration = Duration::from_secs(1);

/// Time limit for an answer; after it, a broker counts as unavailable.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The messages in a lane's queues, and their consumers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Number of messages that were not given to a consumer.
    pub messages: u64,
    /// Number of consumers.
    pub consumers: u64,
}

/// The lanes whose queues exist, in the order of [`LaneName::ALL`].
pub type Depths = Vec<(LaneName, Depth)>;

/// Reads the lengths of a fleet's queues, on a separate connection.
pub struct QueueDepths {
    broker: Endpoint,
    latest: Mutex<Latest>,
}

#[derive(Default)]
struct Latest {
    connection: Option<Connection>,
    depths: Option<(Instant, Depths)>,
}

impl QueueDepths {
    /// Creates the reader, which connects on its first call.
    pub fn new(broker: &settings::RabbitMq) -> Result<Self> {
        Ok(Self { broker: Endpoint::new(broker)?, latest: Mutex::default() })
    }

    /// Returns the state of each lane, at most a second old. Queues that do not exist are left out.
    pub async fn read(&self) -> Result<Depths> {
        let mut latest = self.latest.lock().await;
        if let Some((_, depths)) = latest.depths.as_ref().filter(|(made, _)| made.elapsed() < CACHE_TTL) {
            return Ok(depths.clone());
        }
        // A connection that has failed, or on which a call was cancelled, is not used again.
        let connection = latest.connection.take().filter(|connection| connection.status().connected());
        let looking = async {
            let connection = match connection {
                Some(open) => open,
                None => self.broker.open("trawl status").await?,
            };
            let depths = all(&connection).await?;
            Ok((connection, depths))
        };
        let late =
            || Error::new(ErrorKind::Unavailable, format!("rabbitmq: no answer within {ANSWER_TIMEOUT:?}"));
        let (connection, depths) = timeout(ANSWER_TIMEOUT, looking).await.unwrap_or_else(|_| Err(late()))?;
        latest.connection = Some(connection);
        latest.depths = Some((Instant::now(), depths.clone()));
        Ok(depths)
    }
}

async fn all(connection: &Connection) -> Result<Depths> {
    let mut looking = Looking { connection, channel: None };
    let mut all = Vec::with_capacity(LaneName::ALL.len());
    for lane in LaneName::ALL {
        let mut depth = None;
        for queue in queues(lane) {
            if let Some(more) = looking.at(queue).await? {
                let sum: &mut Depth = depth.get_or_insert_default();
                sum.messages += more.messages;
                sum.consumers += more.consumers;
            }
        }
        // Consumers of an inlet also consume its lane, and are counted there.
        if let (Some(depth), Some(inlet)) = (&mut depth, lane.source_queue().and_then(names::inlet)) {
            let more = looking.at(inlet.to_owned()).await?;
            depth.messages += more.unwrap_or_default().messages;
        }
        all.extend(depth.map(|depth| (lane, depth)));
    }
    if let Some(channel) = looking.channel {
        super::channel::close(&channel).await;
    }
    Ok(all)
}

fn queues(lane: LaneName) -> Vec<String> {
    match lane {
        LaneName::Due => vec![names::DUE.to_owned()],
        LaneName::Priority => vec![names::PRIORITY.to_owned()],
        LaneName::Bulk => vec![names::BULK.to_owned()],
        LaneName::Wait => RUNGS.map(names::rung).to_vec(),
        LaneName::Expired => vec![names::EXPIRED.to_owned()],
        LaneName::Failed => vec![names::FAILED.to_owned()],
        LaneName::Jobs => vec![names::JOBS.to_owned()],
    }
}

/// A channel for checking queues. A queue that does not exist closes it.
struct Looking<'a> {
    connection: &'a Connection,
    channel: Option<Channel>,
}

impl Looking<'_> {
    async fn at(&mut self, queue: String) -> Result<Option<Depth>> {
        let channel = match self.channel.take() {
            Some(open) => open,
            None => self.connection.channel().await?,
        };
        let look = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        match answered(channel.queue_declare(queue.into(), look, FieldTable::default())).await {
            Ok(queue) => {
                self.channel = Some(channel);
                let (messages, consumers) = (queue.message_count().into(), queue.consumer_count().into());
                Ok(Some(Depth { messages, consumers }))
            }
            Err(error) if is_soft(&error, AMQPSoftError::NOTFOUND) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }
}

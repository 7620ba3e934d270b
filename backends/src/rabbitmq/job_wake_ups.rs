//! Wake-ups for jobs: empty messages in the queue `crawl_jobs`, each for one worker. The jobs themselves are in Redis.

use std::sync::Arc;
use std::time::Duration;

use lapin::BasicProperties;
use lapin::options::BasicConsumeOptions;
use lapin::types::FieldTable;
use tokio::sync::Mutex;
use tokio::time::sleep;
use tracing::debug;
use trawl_common::ports::Result;
use trawl_common::settings::{self, Queues};

use super::connection::Endpoint;
use super::erased::{Connection, Incoming};
use super::layout::Layout;
use super::names;
use super::publisher::{Outgoing, Publisher};
use super::topology::{Tasks, Topology};

/// The wait before a queue that could not be consumed is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Sends wake-ups, and takes them.
pub struct JobWakeUps {
    broker: Arc<Endpoint>,
    layout: Arc<Layout>,
    publisher: Publisher,
    taking: Mutex<Option<Taking>>,
}

struct Taking {
    /// Closes when dropped.
    _connection: Connection,
    wake_ups: Incoming,
}

impl JobWakeUps {
    /// Creates the wake-ups on this broker. Each side connects on its first call.
    pub fn new(broker: &settings::RabbitMq, queues: &Queues) -> Result<Self> {
        let (broker, layout) = (Arc::new(Endpoint::new(broker)?), Arc::new(Layout::new(queues)?));
        let publisher =
            Publisher::new(Arc::clone(&broker), Topology::Consuming(Arc::clone(&layout), Tasks::Left));
        Ok(Self { broker, layout, publisher, taking: Mutex::default() })
    }

    /// Sends a wake-up.
    pub async fn send(&self) -> Result<()> {
        let wake_up = Outgoing {
            exchange: "",
            key: names::JOBS.to_owned(),
            body: Vec::new(),
            properties: BasicProperties::default(),
            mandatory: true,
        };
        self.publisher.send([wake_up]).await
    }

    /// Waits for a wake-up. Cancelling the call loses none.
    pub async fn next(&self) {
        let mut taking = self.taking.lock().await;
        loop {
            if taking.is_none() {
                match self.take().await {
                    Ok(open) => *taking = Some(open),
                    // Jobs are found without wake-ups too, so an error only delays them.
                    Err(error) => {
                        debug!(%error, "no wake-ups for jobs just now");
                        sleep(RETRY_DELAY).await;
                        continue;
                    }
                }
            }
            let Some(open) = &mut *taking else { continue };
            match open.wake_ups.next().await {
                Some(Ok(_)) => return,
                Some(Err(_)) | None => *taking = None,
            }
        }
    }

    /// Starts consuming. Wake-ups are taken without acknowledgement: a lost one costs seconds.
    async fn take(&self) -> Result<Taking> {
        let connection = self.broker.open("trawl jobs").await?;
        Topology::Consuming(Arc::clone(&self.layout), Tasks::Left).declare(&connection).await?;
        let channel = connection.channel().await?;
        let options = BasicConsumeOptions { no_ack: true, ..BasicConsumeOptions::default() };
        let tag = format!("trawl.{}", names::JOBS);
        let wake_ups = channel.consume(names::JOBS, tag, options, FieldTable::default()).await?;
        Ok(Taking { wake_ups, _connection: connection })
    }
}

//! The stream `control`: what was ordered of crawls and hosts ([`crate::control_log`]).

use std::sync::Arc;

use lapin::BasicProperties;
use tracing::warn;
use trawl_common::ports::Result;
use trawl_common::settings;
use trawl_common::text::printable;

use super::connection::Broker;
use super::names;
use super::publisher::{Outgoing, Publisher};
use super::stream::{self, From};
use super::topology::{Stream, Topology};
use crate::control_log::{Logged, Record};

/// Records that the broker sends ahead.
const PREFETCH: u16 = 1_000;

/// The stream, written and read on connections of its own, which are opened when they are needed.
pub struct ControlLog {
    broker: Arc<Broker>,
    publisher: Publisher,
    topology: Topology,
}

impl ControlLog {
    /// Connects to nothing yet.
    pub fn new(broker: &settings::RabbitMq, topology: settings::Topology) -> Result<Self> {
        let broker = Arc::new(Broker::new(broker)?);
        let topology = Topology::Stream(Stream::control(topology));
        let publisher = Publisher::new(Arc::clone(&broker), topology.clone());
        Ok(Self { broker, publisher, topology })
    }

    /// Adds a record; it is durable when this returns.
    pub(crate) async fn append(&self, record: &Record) -> Result<()> {
        let outgoing = Outgoing {
            exchange: "",
            key: names::CONTROL.to_owned(),
            // Names and numbers: they always serialise.
            body: serde_json::to_vec(record).unwrap_or_default(),
            properties: BasicProperties::default()
                .with_delivery_mode(2)
                .with_content_type("application/json".into()),
            mandatory: true,
        };
        self.publisher.send([outgoing]).await
    }

    /// What all records say that were added before.
    pub(crate) async fn read(&self) -> Result<Logged> {
        let connection = self.broker.open("trawl control").await?;
        self.topology.declare(&connection).await?;
        let mut reader = stream::read(connection, names::CONTROL, From::First, PREFETCH).await?;
        let mut logged = Logged::default();
        loop {
            let entry = reader.next().await?;
            if let Some(body) = &entry.body {
                match serde_json::from_slice(body) {
                    Ok(record) => logged.apply(record),
                    Err(error) => {
                        let text = printable(&String::from_utf8_lossy(body), 200);
                        warn!(offset = entry.offset, %error, text, "an unreadable record in the stream control");
                    }
                }
            }
            // The reader's own mark is there, or a later one.
            if entry.offset >= reader.end() {
                return Ok(logged);
            }
            reader.done(&entry).await?;
        }
    }
}

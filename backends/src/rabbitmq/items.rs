//! The stream of items: what is published to it, and the way to its reader.

use trawl_common::ports::Result;
use trawl_common::settings::{self, Items};
use trawl_common::spider::item::Item;

use super::connection::Endpoint;
use super::publisher::Outgoing;
use super::stream::{self, StreamReader, StreamStart};
use super::topology::{Stream, Topology};
use super::{codec, names};

/// Messages that the broker sends ahead: an item may have 8 MB.
const PREFETCH: u16 = 128;

/// One item as a message.
pub(super) fn outgoing(item: &Item) -> Outgoing {
    Outgoing {
        exchange: names::ITEMS,
        key: item.spider.to_string(),
        // Text, numbers and maps by name: they always serialise.
        body: serde_json::to_vec(item).unwrap_or_default(),
        properties: codec::item_properties(item),
        mandatory: true,
    }
}

/// The way to the stream.
pub struct ItemStream {
    broker: Endpoint,
    topology: Topology,
}

impl ItemStream {
    /// Connects to nothing yet.
    pub fn new(broker: &settings::RabbitMq, items: &Items, topology: settings::Topology) -> Result<Self> {
        let topology = Topology::Stream(Stream::items(items, topology));
        Ok(Self { broker: Endpoint::new(broker)?, topology })
    }

    /// Connects, declares the stream, and begins to read.
    pub async fn read(&self, from: StreamStart) -> Result<StreamReader> {
        let connection = self.broker.open("trawl items").await?;
        self.topology.declare(&connection).await?;
        stream::read(connection, names::ITEMS, from, PREFETCH).await
    }
}

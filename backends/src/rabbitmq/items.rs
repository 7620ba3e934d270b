//! The stream of items: publishing to it, and reading it.

use async_trait::async_trait;
use trawl_common::names::CrawlId;
use trawl_common::ports::{self, Error, ErrorKind, ItemReader, ItemsFrom, Result, StoredItem};
use trawl_common::settings::{self, Items};
use trawl_common::spider::item::Item;

use super::connection::Endpoint;
use super::publisher::Outgoing;
use super::stream::{self, StreamEntry, StreamReader, StreamStart};
use super::topology::{Stream, Topology};
use super::{codec, names};

/// Number of messages that the broker sends ahead: an item may have 8 MB.
const PREFETCH: u16 = 128;
/// Number of messages that a reader of one crawl takes before it acknowledges them: meanwhile the broker has
/// others to send.
const ACK_BATCH: u16 = PREFETCH / 2;

/// Returns one item as a message.
pub(super) fn outgoing(item: &Item) -> Outgoing {
    Outgoing {
        exchange: names::ITEMS,
        key: item.spider.to_string(),
        // Text, numbers and maps by name can always be serialised.
        body: serde_json::to_vec(item).unwrap_or_default(),
        properties: codec::item_properties(item),
        mandatory: true,
    }
}

/// Access to the stream.
pub struct ItemStream {
    broker: Endpoint,
    topology: Topology,
}

impl ItemStream {
    /// Creates the access; connects to nothing yet.
    pub fn new(broker: &settings::RabbitMq, items: &Items, topology: settings::Topology) -> Result<Self> {
        let topology = Topology::Stream(Stream::items(items, topology));
        Ok(Self { broker: Endpoint::new(broker)?, topology })
    }

    /// Connects, declares the stream, and starts reading.
    pub async fn read(&self, from: StreamStart) -> Result<StreamReader> {
        let connection = self.broker.open("trawl items").await?;
        self.topology.declare(&connection).await?;
        stream::read(connection, names::ITEMS, from, PREFETCH).await
    }
}

#[async_trait]
impl ports::Items for ItemStream {
    async fn read(&self, crawl: &CrawlId, from: ItemsFrom) -> Result<Box<dyn ItemReader>> {
        let (start, place) = match from {
            ItemsFrom::Time(time) => (StreamStart::Time(time), 0),
            ItemsFrom::Place(place) => (StreamStart::Offset(place), place),
        };
        let reader = self.read(start).await?;
        if place > reader.end() {
            let message = "the stream of items was begun anew: read it from its beginning";
            return Err(Error::new(ErrorKind::Stale, message));
        }
        Ok(Box::new(ItemsOfCrawl { crawl: crawl.clone(), reader, place, taken: 0 }))
    }
}

/// A reader of one crawl's items in the stream of all.
struct ItemsOfCrawl {
    crawl: CrawlId,
    reader: StreamReader,
    place: u64,
    /// Number of messages taken and not acknowledged yet.
    taken: u16,
}

#[async_trait]
impl ItemReader for ItemsOfCrawl {
    async fn next(&mut self) -> Result<Option<StoredItem>> {
        while self.place < self.reader.end() {
            let entry = self.reader.next().await?;
            self.taken += 1;
            if self.taken >= ACK_BATCH {
                self.reader.done(&entry).await?;
                self.taken = 0;
            }
            self.place = entry.offset.saturating_add(1).min(self.reader.end());
            if entry.offset < self.reader.end()
                && let Some(found) = self.item_in(&entry)
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn place(&self) -> u64 {
        self.place
    }
}

impl ItemsOfCrawl {
    /// Returns the item of an entry. Anyone may publish, so entries that are no items are skipped.
    fn item_in(&self, entry: &StreamEntry) -> Option<StoredItem> {
        let body = entry.body.as_deref()?;
        let item: Item = serde_json::from_slice(body).ok()?;
        (item.crawl == self.crawl).then_some(StoredItem { item, bytes: body.len() })
    }
}

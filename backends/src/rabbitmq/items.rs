//! The stream of items: what is published to it, and reading it from any place.

use std::time::Duration;

use futures::StreamExt;
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, ConfirmSelectOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Connection};
use trawl_common::item::Item;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::{self, Items};
use trawl_common::time::UnixMs;

use super::connection::{Broker, failed};
use super::publisher::{self, Outgoing};
use super::topology::{Stream, Topology};
use super::{codec, names};

/// Messages that the broker sends ahead: an item may have 8 MB.
const PREFETCH: u16 = 128;
/// A stream from which not even the reader's own mark comes back for so long is blocked, or without its leader.
const PATIENCE: Duration = Duration::from_secs(30);
/// The header of a mark: of a message that is no item, by which a reader finds where the stream ends.
const MARK: &str = "mark";
const OFFSET: &str = "x-stream-offset";

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

/// Where reading begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// With the oldest that the stream still has.
    First,
    /// With what comes from now on.
    Next,
    /// With the message of this offset, or the next that there is.
    Offset(u64),
    /// About this instant, and not later.
    Time(UnixMs),
}

/// One message of the stream.
#[derive(Debug)]
pub struct Entry {
    /// Its place in the stream.
    pub offset: u64,
    /// What it holds, if it is no reader's mark: an item as JSON, if a worker published it.
    pub body: Option<Vec<u8>>,
    tag: u64,
}

/// The way to the stream.
pub struct ItemStream {
    broker: Broker,
    topology: Topology,
}

impl ItemStream {
    /// Connects to nothing yet.
    pub fn new(broker: &settings::RabbitMq, items: &Items) -> Result<Self> {
        Ok(Self { broker: Broker::new(broker)?, topology: Topology::Items(Stream::new(items)) })
    }

    /// Connects, declares the stream, and begins to read.
    pub async fn read(&self, from: From) -> Result<ItemReader> {
        let connection = self.broker.open("trawl items").await?;
        self.topology.declare(&connection).await?;
        // The mark comes after this reader's place too, wherever that is: it always meets the end.
        let (channel, consumer) = consume(&connection, from, PREFETCH).await?;
        let end = end(&connection).await?;
        Ok(ItemReader { end, consumer, channel, _connection: connection })
    }
}

/// The messages from one place on. After an error it is of no use: another goes on from where it was.
pub struct ItemReader {
    end: u64,
    consumer: lapin::Consumer,
    channel: Channel,
    /// Closes when dropped.
    _connection: Connection,
}

impl ItemReader {
    /// Where the stream ended when reading began: all that was confirmed by then has a lower offset.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The next message; waits for it. A cancelled call has taken nothing.
    pub async fn next(&mut self) -> Result<Entry> {
        entry(next(&mut self.consumer).await?)
    }

    /// Says that all up to `entry` is dealt with, so that the broker sends more.
    pub async fn done(&self, entry: &Entry) -> Result<()> {
        self.channel.basic_ack(entry.tag, BasicAckOptions { multiple: true }).await.map_err(failed)
    }
}

/// Where the stream ends: the offset of a mark that is sent for it. A broker tells a stream's length late and by
/// estimate, and silence says nothing.
async fn end(connection: &Connection) -> Result<u64> {
    let id = format!("{:032x}", rand::random::<u128>());
    let (channel, mut consumer) = consume(connection, From::Next, 1).await?;
    publisher::send_on(&channel, [mark(&id)]).await?;
    let come_back = async {
        loop {
            let delivery = next(&mut consumer).await?;
            let is_it = delivery.properties.message_id().as_ref().is_some_and(|other| other.as_str() == id);
            let Entry { offset, tag, .. } = entry(delivery)?;
            channel.basic_ack(tag, BasicAckOptions::default()).await.map_err(failed)?;
            if is_it {
                return Ok(offset);
            }
        }
    };
    let offset = tokio::time::timeout(PATIENCE, come_back).await.unwrap_or_else(|_| {
        let text = format!("rabbitmq: nothing came from the stream items for {} s", PATIENCE.as_secs());
        Err(Error::new(ErrorKind::Unavailable, text))
    })?;
    // Nobody waits on this channel: failing to close it changes nothing.
    let _ = channel.close(200, "found the end".into()).await;
    Ok(offset)
}

fn mark(id: &str) -> Outgoing {
    let mut headers = FieldTable::default();
    headers.insert(MARK.into(), AMQPValue::Boolean(true));
    let properties = BasicProperties::default().with_delivery_mode(2).with_message_id(id.into());
    Outgoing {
        // Past the exchange: those who have bound a queue of their own want items.
        exchange: "",
        key: names::ITEMS.to_owned(),
        body: b"mark".to_vec(),
        properties: properties.with_headers(headers),
        mandatory: true,
    }
}

async fn consume(connection: &Connection, from: From, prefetch: u16) -> Result<(Channel, lapin::Consumer)> {
    let channel = connection.create_channel().await.map_err(failed)?;
    channel.basic_qos(prefetch, BasicQosOptions::default()).await.map_err(failed)?;
    let place = match from {
        From::First => AMQPValue::LongString("first".into()),
        From::Next => AMQPValue::LongString("next".into()),
        From::Offset(offset) => AMQPValue::LongLongInt(offset.min(i64::MAX as u64) as i64),
        From::Time(time) => AMQPValue::Timestamp(time.0 / 1000),
    };
    let mut arguments = FieldTable::default();
    arguments.insert(ShortString::from(OFFSET), place);
    let options = BasicConsumeOptions::default();
    let consumer = channel.basic_consume(names::ITEMS.into(), "trawl.items".into(), options, arguments).await;
    let consumer = consumer.map_err(failed)?;
    // The broker says that it will read, and then finds the place; but it answers this after that.
    channel.confirm_select(ConfirmSelectOptions::default()).await.map_err(failed)?;
    Ok((channel, consumer))
}

async fn next(consumer: &mut lapin::Consumer) -> Result<Delivery> {
    match consumer.next().await {
        Some(delivery) => delivery.map_err(failed),
        None => Err(Error::new(ErrorKind::Unavailable, "rabbitmq ended the reading of the stream items")),
    }
}

fn entry(delivery: Delivery) -> Result<Entry> {
    let none = FieldTable::default();
    let headers = delivery.properties.headers().as_ref().unwrap_or(&none).inner();
    let Some(AMQPValue::LongLongInt(offset)) = headers.get(OFFSET) else {
        return Err(Error::new(ErrorKind::Corrupt, "rabbitmq: the queue items is no stream"));
    };
    let is_mark = headers.contains_key(MARK);
    let offset = u64::try_from(*offset).unwrap_or_default();
    Ok(Entry { offset, tag: delivery.delivery_tag, body: (!is_mark).then_some(delivery.data) })
}

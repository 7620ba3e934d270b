//! Reading a stream from any position, to its end when reading began and beyond.

use futures::FutureExt;
use futures::future::BoxFuture;
use lapin::BasicProperties;
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, ConfirmSelectOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use tokio::time::timeout;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::time::UnixMs;

use super::channel::{ANSWER_TIMEOUT, answered};
use super::connection::failed;
use super::erased::{Channel, Connection, Incoming};
use super::publisher::{self, Outgoing};

// The header of a mark: a message that is no entry, by which a reader finds the end of the stream.
const MARK: &str = "mark";
const OFFSET: &str = "x-stream-offset";

/// The start of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamStart {
    /// With the oldest message that the stream still has.
    First,
    /// With messages that come from now on.
    Next,
    /// With the message of this offset, or the next existing one.
    Offset(u64),
    /// At about this instant, not later.
    Time(UnixMs),
}

/// One message of the stream.
#[derive(Debug)]
pub struct StreamEntry {
    /// Its position in the stream.
    pub offset: u64,
    /// Its body, unless it is a reader's mark.
    pub body: Option<Vec<u8>>,
    pub(super) headers: FieldTable,
    tag: u64,
}

/// Starts reading the stream of this name, with at most `prefetch` messages sent ahead.
pub(super) fn read(
    connection: Connection,
    stream: &'static str,
    from: StreamStart,
    prefetch: u16,
) -> BoxFuture<'static, Result<StreamReader>> {
    let reading = async move {
        // The mark comes after this reader's position too, so the reader always reaches the end.
        let (channel, consumer) = consume(&connection, stream, from, prefetch).await?;
        let end = end(&connection, stream).await?;
        Ok(StreamReader { stream, end, consumer, channel, _connection: connection })
    };
    reading.boxed()
}

/// The messages from one position on. After an error it is of no use: a new reader continues from its position.
pub struct StreamReader {
    stream: &'static str,
    end: u64,
    consumer: Incoming,
    channel: Channel,
    /// Closes when dropped.
    _connection: Connection,
}

impl StreamReader {
    /// Returns the end of the stream when reading began: everything confirmed by then has a lower offset.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Waits for the next message. A cancelled call has taken nothing.
    pub async fn next(&mut self) -> Result<StreamEntry> {
        entry(next(&mut self.consumer, self.stream).await?, self.stream)
    }

    /// Returns the next message before the end. Such messages exist, so either it comes in time, or the stream has
    /// lost its leader.
    pub(super) async fn next_before_end(&mut self) -> Result<StreamEntry> {
        let stream = self.stream;
        soon(stream, self.next()).await
    }

    /// Acknowledges all messages up to `entry`, so that the broker sends more.
    pub async fn done(&self, entry: &StreamEntry) -> Result<()> {
        answered(self.channel.basic_ack(entry.tag, BasicAckOptions { multiple: true })).await.map_err(failed)
    }
}

/// Returns the end of the stream, which is the offset of a mark that is sent to find it. A broker tells a stream's
/// length late and as an estimate, and silence proves nothing.
async fn end(connection: &Connection, stream: &str) -> Result<u64> {
    let id = format!("{:032x}", rand::random::<u128>());
    let (channel, mut consumer) = consume(connection, stream, StreamStart::Next, 1).await?;
    publisher::send_on(&channel, vec![mark(stream, &id)]).await?;
    let come_back = async {
        loop {
            let delivery = next(&mut consumer, stream).await?;
            let is_it = delivery.properties.message_id().as_ref().is_some_and(|other| other.as_str() == id);
            let StreamEntry { offset, tag, .. } = entry(delivery, stream)?;
            answered(channel.basic_ack(tag, BasicAckOptions::default())).await.map_err(failed)?;
            if is_it {
                return Ok(offset);
            }
        }
    };
    let offset = soon(stream, come_back).await?;
    // Nobody waits on this channel: a failure to close it changes nothing.
    let _ = answered(channel.close(200, "found the end".into())).await;
    Ok(offset)
}

/// Awaits a message that is known to be in a stream, with a time limit.
async fn soon<T>(stream: &str, coming: impl Future<Output = Result<T>>) -> Result<T> {
    timeout(ANSWER_TIMEOUT, coming).await.unwrap_or_else(|_| {
        let text =
            format!("rabbitmq: nothing came from the stream {stream} for {} s", ANSWER_TIMEOUT.as_secs());
        Err(Error::new(ErrorKind::Unavailable, text))
    })
}

fn mark(stream: &str, id: &str) -> Outgoing {
    let mut headers = FieldTable::default();
    headers.insert(MARK.into(), AMQPValue::Boolean(true));
    let properties = BasicProperties::default().with_delivery_mode(2).with_message_id(id.into());
    Outgoing {
        // Sent past any exchange, because programs that have bound a queue to one want only entries.
        exchange: "",
        key: stream.to_owned(),
        body: b"mark".to_vec(),
        properties: properties.with_headers(headers),
        mandatory: true,
    }
}

/// Starts reading a stream, on a separate channel.
pub(super) async fn consume(
    connection: &Connection,
    stream: &str,
    from: StreamStart,
    prefetch: u16,
) -> Result<(Channel, Incoming)> {
    let channel = connection.channel().await?;
    answered(channel.basic_qos(prefetch, BasicQosOptions::default())).await.map_err(failed)?;
    let place = match from {
        StreamStart::First => AMQPValue::LongString("first".into()),
        StreamStart::Next => AMQPValue::LongString("next".into()),
        StreamStart::Offset(offset) => AMQPValue::LongLongInt(offset.min(i64::MAX as u64) as i64),
        StreamStart::Time(time) => AMQPValue::Timestamp(time.0 / 1000),
    };
    let mut arguments = FieldTable::default();
    arguments.insert(ShortString::from(OFFSET), place);
    let options = BasicConsumeOptions::default();
    let tag = format!("trawl.{stream}");
    let consumer = channel.consume(stream, tag, options, arguments).await?;
    // The broker confirms the consumer before it finds the position; but it answers this call after that.
    answered(channel.confirm_select(ConfirmSelectOptions::default())).await.map_err(failed)?;
    Ok((channel, consumer))
}

async fn next(consumer: &mut Incoming, stream: &str) -> Result<Delivery> {
    match consumer.next().await {
        Some(delivery) => delivery.map_err(failed),
        None => Err(Error::new(
            ErrorKind::Unavailable,
            format!("rabbitmq ended the reading of the stream {stream}"),
        )),
    }
}

fn entry(delivery: Delivery, stream: &str) -> Result<StreamEntry> {
    let headers = delivery.properties.headers().clone().unwrap_or_default();
    let Some(AMQPValue::LongLongInt(offset)) = headers.inner().get(OFFSET) else {
        return Err(Error::new(ErrorKind::Corrupt, format!("rabbitmq: the queue {stream} is no stream")));
    };
    let is_mark = headers.contains_key(MARK);
    let offset = u64::try_from(*offset).unwrap_or_default();
    Ok(StreamEntry { offset, tag: delivery.delivery_tag, body: (!is_mark).then_some(delivery.data), headers })
}

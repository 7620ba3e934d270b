//! Declares every queue and exchange. Repeating it is harmless; what exists with other arguments is an error.

use std::time::Duration;

use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, Connection, ExchangeKind};
use trawl_common::ladder::RUNGS;
use trawl_common::lane::Lane;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::{Items, QueueType, Queues};

use super::connection::failed;
use super::names;

const DAY_MS: i64 = 24 * 3600 * 1000;

/// What the stream `control` keeps: some 400,000 records.
const CONTROL_BYTES: u64 = 100_000_000;

/// What is declared on a connection before it is used.
#[derive(Clone)]
pub(super) enum Topology {
    /// All that URLs and dead letters pass through, and the exchange of events.
    Urls(Queues),
    /// A stream. Apart from the others, as one that has lost its leader (seen on RabbitMQ 3.10, after a kill just when it was
    /// declared) can be declared no more, and is to stop nobody who does not need it.
    Stream(Stream),
}

/// A stream, and how much it keeps: all without a limit.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    name: &'static str,
    /// The exchange that it takes everything from, if it has one.
    exchange: Option<&'static str>,
    /// What its limits are set by, if a person may set them.
    settings: Option<&'static str>,
    max_age: Option<Duration>,
    max_bytes: Option<u64>,
}

impl Topology {
    /// Declares all on a channel of its own: an error closes it.
    pub(super) async fn declare(&self, connection: &Connection) -> Result<()> {
        let channel = connection.create_channel().await.map_err(failed)?;
        let declaring = Declaring { channel: &channel };
        match self {
            Self::Urls(queues) => {
                declaring.letters(queues.kind).await?;
                declaring.lines(queues).await?;
                declaring.exchange(names::EVENTS, ExchangeKind::Topic).await?;
            }
            Self::Stream(stream) => declaring.stream(*stream).await?,
        }
        // Nobody waits on this channel: failing to close it changes nothing.
        let _ = channel.close(200, "declared".into()).await;
        Ok(())
    }
}

impl Stream {
    /// The items of all crawls.
    pub(super) fn items(items: &Items) -> Self {
        Self {
            name: names::ITEMS,
            exchange: Some(names::ITEMS),
            settings: Some("[items]"),
            max_age: items.retention,
            max_bytes: items.max_size.map(|size| size.as_u64()),
        }
    }

    /// What was ordered of crawls and hosts.
    pub(super) fn control() -> Self {
        Self {
            name: names::CONTROL,
            exchange: None,
            settings: None,
            max_age: None,
            max_bytes: Some(CONTROL_BYTES),
        }
    }

    fn table(self) -> FieldTable {
        let mut table = FieldTable::default();
        let mut put = |name: &'static str, value: AMQPValue| {
            table.insert(ShortString::from(name), value);
        };
        put("x-queue-type", AMQPValue::LongString("stream".into()));
        if let Some(age) = self.max_age {
            put("x-max-age", AMQPValue::LongString(format!("{}s", age.as_secs()).into()));
        }
        if let Some(bytes) = self.max_bytes {
            put("x-max-length-bytes", AMQPValue::LongLongInt(bytes.min(i64::MAX as u64) as i64));
        }
        table
    }
}

/// How long the messages on the fullest rung are under way at most; zero when all are empty.
pub(super) async fn longest_parked(connection: &Connection) -> Result<Duration> {
    let channel = connection.create_channel().await.map_err(failed)?;
    let mut longest = Duration::ZERO;
    for rung in RUNGS {
        let look = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let queue = channel.queue_declare(names::rung(rung).into(), look, FieldTable::default()).await;
        if queue.map_err(failed)?.message_count() > 0 {
            longest = longest.max(rung);
        }
    }
    // Nobody waits on this channel: failing to close it changes nothing.
    let _ = channel.close(200, "looked".into()).await;
    Ok(longest)
}

struct Declaring<'a> {
    channel: &'a Channel,
}

#[derive(Clone, Copy)]
struct Arguments {
    kind: QueueType,
    ttl_ms: Option<i64>,
    /// Where what expires goes: an exchange and a key.
    dead_letter: Option<(&'static str, &'static str)>,
}

impl Declaring<'_> {
    async fn letters(&self, kind: QueueType) -> Result<()> {
        let for_ever = Arguments { kind, ttl_ms: None, dead_letter: None };
        self.exchange(names::FAILED_EXCHANGE, ExchangeKind::Direct).await?;
        self.exchange(names::EXPIRED_EXCHANGE, ExchangeKind::Direct).await?;
        self.queue(names::FAILED, Arguments { ttl_ms: Some(DAY_MS), ..for_ever }).await?;
        self.bind(names::FAILED, names::FAILED_EXCHANGE, names::FAILED_KEY).await?;
        self.queue(names::EXPIRED, for_ever).await?;
        self.bind(names::EXPIRED, names::EXPIRED_EXCHANGE, names::EXPIRED_KEY).await
    }

    async fn stream(&self, stream: Stream) -> Result<()> {
        let declared = self.channel.queue_declare(stream.name.into(), durable(), stream.table()).await;
        declared.map_err(|error| conflict("stream", stream.name, stream.settings, &error))?;
        if let Some(exchange) = stream.exchange {
            self.exchange(exchange, ExchangeKind::Topic).await?;
            self.bind(stream.name, exchange, "#").await?;
        }
        Ok(())
    }

    async fn lines(&self, queues: &Queues) -> Result<()> {
        let kind = queues.kind;
        let expire = Some((names::EXPIRED_EXCHANGE, names::EXPIRED_KEY));
        for lane in Lane::ALL {
            let ttl_ms = Some(queues.lane(lane).ttl.as_millis() as i64);
            self.queue(names::line(lane.into()), Arguments { kind, ttl_ms, dead_letter: expire }).await?;
        }
        self.queue(names::DUE, Arguments { kind, ttl_ms: None, dead_letter: expire }).await?;
        for rung in RUNGS {
            let ttl_ms = Some(rung.as_millis() as i64);
            let arguments = Arguments { kind, ttl_ms, dead_letter: Some(("", names::DUE)) };
            self.queue(&names::rung(rung), arguments).await?;
        }
        Ok(())
    }

    async fn exchange(&self, name: &str, kind: ExchangeKind) -> Result<()> {
        let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
        let declared = self.channel.exchange_declare(name.into(), kind, options, FieldTable::default());
        declared.await.map_err(|error| conflict("exchange", name, Some("[queues]"), &error))
    }

    async fn queue(&self, name: &str, arguments: Arguments) -> Result<()> {
        let declared = self.channel.queue_declare(name.into(), durable(), arguments.table()).await;
        declared.map(drop).map_err(|error| conflict("queue", name, Some("[queues]"), &error))
    }

    async fn bind(&self, queue: &str, exchange: &str, key: &str) -> Result<()> {
        let options = QueueBindOptions::default();
        let bound = self.channel.queue_bind(
            queue.into(),
            exchange.into(),
            key.into(),
            options,
            FieldTable::default(),
        );
        bound.await.map_err(failed)
    }
}

impl Arguments {
    fn table(self) -> FieldTable {
        let mut table = FieldTable::default();
        let mut put = |name: &'static str, value: AMQPValue| {
            table.insert(ShortString::from(name), value);
        };
        let text = |text: &str| AMQPValue::LongString(text.into());
        put("x-queue-type", text(self.kind.as_str()));
        if let Some(ttl) = self.ttl_ms {
            put("x-message-ttl", AMQPValue::LongLongInt(ttl));
        }
        if let Some((exchange, key)) = self.dead_letter {
            put("x-dead-letter-exchange", text(exchange));
            put("x-dead-letter-routing-key", text(key));
            if self.kind == QueueType::Quorum {
                // Expired messages move on only when their next queue has confirmed them.
                put("x-dead-letter-strategy", text("at-least-once"));
                put("x-overflow", text("reject-publish"));
            }
        }
        table
    }
}

fn durable() -> QueueDeclareOptions {
    QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() }
}

fn conflict(what: &str, name: &str, section: Option<&str>, error: &lapin::Error) -> Error {
    if !is_precondition_failed(error) {
        return failed(error.clone());
    }
    let fit =
        section.map(|section| format!("make the settings in {section} fit it, or ")).unwrap_or_default();
    let way_out = format!(
        "rabbitmq has a {what} {name} with other arguments: {error}; \
         {fit}empty and delete it, and it is declared anew"
    );
    Error::new(ErrorKind::Refused, way_out)
}

/// Only this says that the arguments differ: a queue whose node is away is "not found".
fn is_precondition_failed(error: &lapin::Error) -> bool {
    let lapin::ErrorKind::ProtocolError(protocol) = error.kind() else { return false };
    matches!(protocol.kind(), AMQPErrorKind::Soft(AMQPSoftError::PRECONDITIONFAILED))
}

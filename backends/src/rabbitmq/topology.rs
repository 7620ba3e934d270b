//! Declares every queue and exchange. Repeating it is harmless; what exists with other arguments is an error.

use std::time::Duration;

use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, Connection, ExchangeKind};
use trawl_common::lane::Lane;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::{QueueType, Queues};

use super::connection::failed;
use super::names;

const DAY_MS: i64 = 24 * 3600 * 1000;

/// Declares all on a channel of its own: an error closes it.
pub(super) async fn declare(connection: &Connection, queues: &Queues) -> Result<()> {
    let channel = connection.create_channel().await.map_err(failed)?;
    let topology = Topology { channel: &channel, kind: queues.kind };
    topology.exchange(names::FAILED_EXCHANGE, ExchangeKind::Direct).await?;
    topology.exchange(names::EXPIRED_EXCHANGE, ExchangeKind::Direct).await?;
    topology.exchange(names::EVENTS, ExchangeKind::Topic).await?;
    topology.queue(names::FAILED, Arguments { ttl_ms: Some(DAY_MS), ..Arguments::default() }).await?;
    topology.bind(names::FAILED, names::FAILED_EXCHANGE, names::FAILED_KEY).await?;
    topology.queue(names::EXPIRED, Arguments::default()).await?;
    topology.bind(names::EXPIRED, names::EXPIRED_EXCHANGE, names::EXPIRED_KEY).await?;
    let expire = Some((names::EXPIRED_EXCHANGE, names::EXPIRED_KEY));
    for lane in Lane::ALL {
        let ttl_ms = Some(queues.lane(lane).ttl.as_millis() as i64);
        topology.queue(names::line(lane.into()), Arguments { ttl_ms, dead_letter: expire }).await?;
    }
    topology.queue(names::DUE, Arguments { ttl_ms: None, dead_letter: expire }).await?;
    for rung in names::RUNGS {
        let arguments =
            Arguments { ttl_ms: Some(rung.as_millis() as i64), dead_letter: Some(("", names::DUE)) };
        topology.queue(&names::rung(rung), arguments).await?;
    }
    // Nobody waits on this channel: failing to close it changes nothing.
    let _ = channel.close(200, "declared".into()).await;
    Ok(())
}

/// How long the messages on the fullest rung are under way at most; zero when all are empty.
pub(super) async fn longest_parked(connection: &Connection) -> Result<Duration> {
    let channel = connection.create_channel().await.map_err(failed)?;
    let mut longest = Duration::ZERO;
    for rung in names::RUNGS {
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

struct Topology<'a> {
    channel: &'a Channel,
    kind: QueueType,
}

#[derive(Clone, Copy, Default)]
struct Arguments {
    ttl_ms: Option<i64>,
    /// Where what expires goes: an exchange and a key.
    dead_letter: Option<(&'static str, &'static str)>,
}

impl Topology<'_> {
    async fn exchange(&self, name: &str, kind: ExchangeKind) -> Result<()> {
        let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
        let declared = self.channel.exchange_declare(name.into(), kind, options, FieldTable::default());
        declared.await.map_err(|error| conflict("exchange", name, &error))
    }

    async fn queue(&self, name: &str, arguments: Arguments) -> Result<()> {
        let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        let table = self.table(arguments);
        let declared = self.channel.queue_declare(name.into(), options, table).await;
        declared.map(drop).map_err(|error| conflict("queue", name, &error))
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

    fn table(&self, arguments: Arguments) -> FieldTable {
        let mut table = FieldTable::default();
        let mut put = |name: &'static str, value: AMQPValue| {
            table.insert(ShortString::from(name), value);
        };
        let text = |text: &str| AMQPValue::LongString(text.into());
        put("x-queue-type", text(self.kind.as_str()));
        if let Some(ttl) = arguments.ttl_ms {
            put("x-message-ttl", AMQPValue::LongLongInt(ttl));
        }
        if let Some((exchange, key)) = arguments.dead_letter {
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

fn conflict(what: &str, name: &str, error: &lapin::Error) -> Error {
    if !is_precondition_failed(error) {
        return failed(error.clone());
    }
    let way_out = format!(
        "rabbitmq has a {what} {name} with other arguments: {error}; \
         make the settings in [queues] fit it, or empty and delete it, and it is declared anew"
    );
    Error::new(ErrorKind::Refused, way_out)
}

/// Only this says that the arguments differ: a queue whose node is away is "not found".
fn is_precondition_failed(error: &lapin::Error) -> bool {
    let lapin::ErrorKind::ProtocolError(protocol) = error.kind() else { return false };
    matches!(protocol.kind(), AMQPErrorKind::Soft(AMQPSoftError::PRECONDITIONFAILED))
}

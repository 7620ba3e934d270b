//! The arguments with which queues are declared.

use std::time::Duration;

use lapin::types::{AMQPValue, FieldTable, ShortString};
use trawl_common::settings::QueueType;

/// Number of times that a message of a quorum queue may come back before it counts as expired. RabbitMQ 4 would
/// use 20, but a worker that crashes gives back everything that it had; the records find what kills workers, one
/// URL at a time.
const DELIVERY_LIMIT: i64 = 1_000_000;

/// The arguments of one queue.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'a> {
    pub(super) kind: QueueType,
    pub(super) ttl: Option<Duration>,
    /// The destination of expired messages: an exchange and a key.
    pub(super) dead_letter: Option<(&'static str, &'a str)>,
    /// Maximum number of messages; the oldest are dropped first.
    pub(super) most: Option<u32>,
    /// Time after which the broker deletes the queue if nobody consumes or declares it.
    pub(super) unused: Option<Duration>,
    /// Whether messages are consumed from it, and may be given back.
    pub(super) is_consumed: bool,
}

impl Arguments<'_> {
    pub(super) fn table(self) -> FieldTable {
        let mut table = FieldTable::default();
        let mut put = |name: &'static str, value: AMQPValue| {
            table.insert(ShortString::from(name), value);
        };
        let text = |text: &str| AMQPValue::LongString(text.into());
        put("x-queue-type", text(self.kind.as_str()));
        if let Some(ttl) = self.ttl {
            put("x-message-ttl", AMQPValue::LongLongInt(ttl.as_millis() as i64));
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
        if let Some(most) = self.most {
            put("x-max-length", AMQPValue::LongLongInt(most.into()));
            put("x-overflow", text("drop-head"));
        }
        if let Some(unused) = self.unused {
            put("x-expires", AMQPValue::LongLongInt(unused.as_millis() as i64));
        }
        if self.has_delivery_limit() {
            put("x-delivery-limit", AMQPValue::LongLongInt(DELIVERY_LIMIT));
        }
        table
    }

    pub(super) fn has_delivery_limit(self) -> bool {
        self.is_consumed && self.kind == QueueType::Quorum
    }
}

/// Returns arguments in a form for people.
pub(super) fn shown(table: &FieldTable) -> String {
    let argument = |(name, value): (&ShortString, &AMQPValue)| match value {
        AMQPValue::LongString(text) => format!("{name} = \"{text}\""),
        AMQPValue::LongLongInt(number) => format!("{name} = {number}"),
        other => format!("{name} = {other:?}"),
    };
    table.inner().iter().map(argument).collect::<Vec<_>>().join(", ")
}

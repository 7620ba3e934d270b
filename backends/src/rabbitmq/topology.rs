//! Declares all queues and exchanges. Declaring again is harmless; existing ones with other arguments are an error.

use std::sync::Arc;
use std::time::Duration;

use lapin::ExchangeKind;
use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use trawl_common::frontier::ladder::RUNGS;
use trawl_common::frontier::lane::Lane;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::{self, Items};

use super::arguments::{self, Arguments};
use super::channel::{answered, close, durable, is_precondition_failed};
use super::connection::failed;
use super::erased::{Channel, Connection};
use super::layout::Layout;
use super::{events, names, passive};

/// Size limit of the stream `control` in bytes, for some 400,000 records.
const CONTROL_BYTES: u64 = 100_000_000;
/// How long the stream `journal` keeps an entry. Entries that still hold are rewritten long before.
const JOURNAL_AGE: Duration = Duration::from_secs(2 * 24 * 3600);
/// Segment size of the stream `journal` in bytes. A stream drops whole segments, and never the last one.
const JOURNAL_SEGMENT: u64 = 32 << 20;

/// The largest segment of the stream `items` in bytes, if it has limits. The broker applies limits only when a segment
/// is full, and its default segment has 500 MB.
const MAX_ITEMS_SEGMENT: u64 = 64 << 20;
/// The smallest segment of the stream `items`, in bytes.
const MIN_ITEMS_SEGMENT: u64 = 1_000_000;

/// Size limit of the stream `control.counts` in bytes. Its last entry includes all earlier ones, so one entry would be
/// enough.
const COUNTS_BYTES: u64 = 2_000_000;

/// The queues and exchanges that a connection declares, or looks for, before it is used.
#[derive(Clone)]
pub(super) enum Topology {
    /// The exchanges and queues that URLs and dead letters are published to.
    Publishing(Arc<Layout>),
    /// All queues and exchanges that URLs pass through, and those of tasks if it consumes them.
    Consuming(Arc<Layout>, Tasks),
    /// The queues of webhooks with these ids.
    Webhooks(Arc<Layout>, Arc<[String]>),
    /// A stream. It is separate from the others because one that has lost its leader (seen on RabbitMQ 3.10, after a
    /// kill just as it was declared) can no longer be declared, and must not stop anyone who does not need it.
    Stream(Stream),
}

/// Declares all exchanges and queues that URLs pass through.
async fn declare(layout: &Layout, connection: &Connection) -> Result<()> {
    let mut declaring = Declaring::on(connection).await?;
    declaring.exchange(names::FAILED_EXCHANGE, ExchangeKind::Direct).await?;
    declaring.exchange(names::EXPIRED_EXCHANGE, ExchangeKind::Direct).await?;
    declaring.exchange(names::EVENTS, ExchangeKind::Topic).await?;
    declaring.exchange(names::URLS, ExchangeKind::Direct).await?;
    for (name, arguments) in layout.all() {
        declaring.queue(&name, arguments).await?;
    }
    for (source, inlet, arguments) in layout.inlets() {
        declaring.queue(inlet, arguments).await?;
        declaring.bind(inlet, names::URLS, names::source(source)).await?;
    }
    declaring.bind(names::FAILED, names::FAILED_EXCHANGE, names::FAILED_KEY).await?;
    declaring.bind(names::EXPIRED, names::EXPIRED_EXCHANGE, names::EXPIRED_KEY).await?;
    declaring.end().await
}

/// Uses existing queues, and declares those of trawl's own that URLs pass through.
async fn complete(layout: &Layout, connection: &Connection, needed: impl Fn(&str) -> bool) -> Result<()> {
    passive::complete(connection, layout, layout.all(), needed).await?;
    let inlets = layout.inlets().map(|(_, inlet, arguments)| (inlet.to_owned(), arguments)).collect();
    passive::complete(connection, layout, inlets, |_| false).await?;
    let inlets: Vec<_> = layout.inlets().map(|(source, inlet, _)| (inlet, names::source(source))).collect();
    passive::feed(connection, names::URLS, ExchangeKind::Direct, &inlets).await?;
    passive::feed(connection, names::EVENTS, ExchangeKind::Topic, &[]).await?;
    let expired = [(names::EXPIRED, names::EXPIRED_KEY)];
    passive::feed(connection, names::EXPIRED_EXCHANGE, ExchangeKind::Direct, &expired).await
}

impl Topology {
    /// Declares all queues and exchanges, or checks that they exist, on channels of its own, because an error closes a
    /// channel.
    pub(super) async fn declare(&self, connection: &Connection) -> Result<()> {
        match self {
            Self::Publishing(layout) | Self::Consuming(layout, _)
                if layout.queues.topology == settings::Topology::Declare =>
            {
                declare(layout, connection).await
            }
            Self::Publishing(layout) => {
                let is_lane =
                    |queue: &str| Lane::OF_URLS.iter().any(|lane| names::source((*lane).into()) == queue);
                complete(layout, connection, is_lane).await
            }
            Self::Consuming(layout, tasks) => {
                complete(layout, connection, |queue| *tasks == Tasks::Taken || queue != names::TASKS).await
            }
            Self::Webhooks(layout, ids) => events::webhooks(connection, layout, ids).await,
            Self::Stream(stream) => stream.declare(connection).await,
        }
    }
}

/// Whether the queue of tasks is consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tasks {
    /// This connection consumes it.
    Taken,
    /// Others consume it, and it need not exist.
    Left,
}

/// A stream and its limits; without limits it keeps everything.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    name: &'static str,
    /// The exchange whose messages it receives, if any.
    exchange: Option<&'static str>,
    /// The settings of its limits, if they are configurable.
    settings: Option<&'static str>,
    max_age: Option<Duration>,
    max_bytes: Option<u64>,
    /// Segment size in bytes; `None` for the broker's default (500 MB). A stream drops whole segments.
    segment_bytes: Option<u64>,
    topology: settings::Topology,
}

impl Stream {
    /// The items of all crawls.
    pub(super) fn items(items: &Items, topology: settings::Topology) -> Self {
        let segment =
            items.max_size.map(|size| (size.as_u64() / 8).clamp(MIN_ITEMS_SEGMENT, MAX_ITEMS_SEGMENT));
        Self {
            name: names::ITEMS,
            exchange: Some(names::ITEMS),
            settings: Some("[items]"),
            max_age: items.retention,
            max_bytes: items.max_size.map(|size| size.as_u64()),
            segment_bytes: segment.or(items.retention.map(|_| MAX_ITEMS_SEGMENT)),
            topology,
        }
    }

    /// The orders about crawls and hosts.
    pub(super) fn control(topology: settings::Topology) -> Self {
        Self {
            name: names::CONTROL,
            exchange: None,
            settings: None,
            max_age: None,
            max_bytes: Some(CONTROL_BYTES),
            segment_bytes: None,
            topology,
        }
    }

    /// The submitted jobs, deployed spiders and cron schedules.
    pub(super) fn journal(topology: settings::Topology) -> Self {
        Self {
            name: names::JOURNAL,
            exchange: None,
            settings: None,
            max_age: Some(JOURNAL_AGE),
            max_bytes: None,
            segment_bytes: Some(JOURNAL_SEGMENT),
            topology,
        }
    }

    pub(super) fn name(self) -> &'static str {
        self.name
    }

    /// Whether the stream does not exist and trawl has no permission to declare it.
    pub(super) async fn is_missing(self, connection: &Connection) -> Result<bool> {
        let is_passive = self.topology == settings::Topology::Passive;
        Ok(is_passive
            && !passive::exists(connection, self.name).await?
            && !passive::declare(connection, self.name, self.table()).await?)
    }

    /// The page counts of crawls.
    pub(super) fn counts(topology: settings::Topology) -> Self {
        Self {
            name: names::COUNTS,
            max_bytes: Some(COUNTS_BYTES),
            segment_bytes: Some(COUNTS_BYTES / 2),
            ..Self::control(topology)
        }
    }

    async fn declare(self, connection: &Connection) -> Result<()> {
        if self.topology == settings::Topology::Passive {
            if self.is_missing(connection).await? {
                return Err(passive::missing(self.name, &arguments::shown(&self.table())));
            }
            return match self.exchange {
                None => Ok(()),
                Some(exchange) => {
                    passive::feed(connection, exchange, ExchangeKind::Topic, &[(self.name, "#")]).await
                }
            };
        }
        let channel = connection.channel().await?;
        let declared = answered(channel.queue_declare(self.name.into(), durable(), self.table())).await;
        declared.map_err(|error| refused("stream", self.name, self.settings, &error))?;
        if let Some(name) = self.exchange {
            let declared = exchange(&channel, name, ExchangeKind::Topic).await;
            declared.map_err(|error| refused("exchange", name, Some("[queues]"), &error))?;
            bind(&channel, self.name, name, "#").await?;
        }
        close(&channel).await;
        Ok(())
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
        let sizes =
            [("x-max-length-bytes", self.max_bytes), ("x-stream-max-segment-size-bytes", self.segment_bytes)];
        for (name, size) in sizes {
            if let Some(bytes) = size {
                put(name, AMQPValue::LongLongInt(bytes.min(i64::MAX as u64) as i64));
            }
        }
        table
    }
}

/// The longest time that messages on the fullest rung can still be in transit; zero if all rungs are empty.
pub(super) async fn longest_parked(connection: &Connection) -> Result<Duration> {
    let channel = connection.channel().await?;
    let mut longest = Duration::ZERO;
    for rung in RUNGS {
        let look = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let queue =
            answered(channel.queue_declare(names::rung(rung).into(), look, FieldTable::default())).await;
        if queue.map_err(failed)?.message_count() > 0 {
            longest = longest.max(rung);
        }
    }
    close(&channel).await;
    Ok(longest)
}

/// Declares queues and exchanges one by one. One that exists with other arguments does not prevent the declaration of
/// the rest.
pub(super) struct Declaring<'a> {
    connection: &'a Connection,
    channel: Channel,
    conflicts: Vec<String>,
}

impl<'a> Declaring<'a> {
    pub(super) async fn on(connection: &'a Connection) -> Result<Self> {
        let channel = connection.channel().await?;
        Ok(Self { connection, channel, conflicts: Vec::new() })
    }

    pub(super) async fn exchange(&mut self, name: &str, kind: ExchangeKind) -> Result<()> {
        match exchange(&self.channel, name, kind).await {
            Ok(()) => Ok(()),
            Err(error) => self.note("exchange", name, error).await,
        }
    }

    pub(super) async fn queue(&mut self, name: &str, arguments: Arguments<'_>) -> Result<()> {
        match answered(self.channel.queue_declare(name.into(), durable(), arguments.table())).await {
            Ok(_) => Ok(()),
            Err(error) => self.note("queue", name, error).await,
        }
    }

    /// Keeps a conflict to report at the end; any other error is returned at once.
    async fn note(&mut self, what: &str, name: &str, error: lapin::Error) -> Result<()> {
        if !is_precondition_failed(&error) {
            return Err(failed(error));
        }
        self.conflicts.push(conflict(what, name, &error));
        self.channel = self.connection.channel().await?;
        Ok(())
    }

    pub(super) async fn bind(&self, queue: &str, exchange: &str, key: &str) -> Result<()> {
        bind(&self.channel, queue, exchange, key).await
    }

    pub(super) async fn end(self) -> Result<()> {
        close(&self.channel).await;
        match &self.conflicts[..] {
            [] => Ok(()),
            conflicts => {
                Err(Error::new(ErrorKind::Refused, way_out(&conflicts.join("; "), Some("[queues]"))))
            }
        }
    }
}

async fn exchange(channel: &Channel, name: &str, kind: ExchangeKind) -> lapin::Result<()> {
    let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    answered(channel.exchange_declare(name.into(), kind, options, FieldTable::default())).await
}

async fn bind(channel: &Channel, queue: &str, exchange: &str, key: &str) -> Result<()> {
    let options = QueueBindOptions::default();
    let bound = channel.queue_bind(queue.into(), exchange.into(), key.into(), options, FieldTable::default());
    answered(bound).await.map_err(failed)
}

fn conflict(what: &str, name: &str, error: &lapin::Error) -> String {
    format!("rabbitmq has a {what} {name} with other arguments: {error}")
}

fn refused(what: &str, name: &str, section: Option<&str>, error: &lapin::Error) -> Error {
    match is_precondition_failed(error) {
        true => Error::new(ErrorKind::Refused, way_out(&conflict(what, name, error), section)),
        false => failed(error.clone()),
    }
}

fn way_out(conflicts: &str, section: Option<&str>) -> String {
    let fit = section.map(|section| format!("make the settings in {section} fit, or ")).unwrap_or_default();
    format!(
        "{conflicts}; {fit}empty and delete it, and it is declared anew, or take it as it is with queues.topology = \"passive\" \
         (what was missing is declared by now)"
    )
}

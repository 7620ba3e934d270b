//! The queue on RabbitMQ.
//!
//! Publishing and consuming use separate connections: a broker that runs low on memory blocks the connection that
//! publishes, and acks must still get through. A broken connection is opened again by the next call that needs it;
//! supervision and back-off are up to the callers.

mod acks;
mod arguments;
mod channel;
/// Public for the fuzzer and the benchmarks only.
#[doc(hidden)]
pub mod codec;
mod connection;
mod consumer;
mod control_log;
mod depths;
mod erased;
mod event_queue;
mod events;
mod examine;
mod items;
mod job_wake_ups;
mod journal;
mod layout;
mod names;
mod newer;
mod passive;
mod publisher;
/// Public for the fuzzer and the benchmarks only.
#[doc(hidden)]
pub mod screen;
/// Public for the fuzzer and the benchmarks only.
#[doc(hidden)]
pub mod seal;
mod signed_stream;
mod stream;
mod topology;
mod webhook_queue;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use async_trait::async_trait;
use codec::Trust;
use connection::Endpoint;
use consumer::{ConsumerSession, Current};
use layout::Layout;
use publisher::{Outgoing, Publisher};
use seal::Seal;
use topology::{Stream, Tasks, Topology};
use tracing::warn;
use trawl_common::events::Event;
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::ladder::Wake;
use trawl_common::frontier::ladder::{rung_for, rung_until};
use trawl_common::frontier::message::Message;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::names::SpiderName;
use trawl_common::ports::{Page, Result};
use trawl_common::settings::{self, Items, Queues};
use trawl_common::spider::item::Item;
use trawl_common::time::UnixMs;
use trawl_common::trace;
use trawl_engine::{Broker, Consumer, Newer, Parked, Probe, ProbeTimes, Receipt};

pub use self::control_log::ControlLog;
pub use self::depths::{Depth, Depths, QueueDepths};
pub use self::event_queue::{EventQueue, EventQueues, Received};
pub use self::examine::examine;
pub use self::items::ItemStream;
pub use self::job_wake_ups::JobWakeUps;
pub use self::journal::Journal;
pub use self::stream::{StreamEntry, StreamReader, StreamStart};
pub(crate) use self::webhook_queue::{Delivery, WebhookQueue};

/// The queue on RabbitMQ.
pub struct RabbitMq {
    broker: Arc<Endpoint>,
    layout: Arc<Layout>,
    trust: Trust,
    publisher: Arc<Publisher>,
    /// Opens a connection of its own once there are items.
    items: Arc<Publisher>,
    consuming: Current,
    /// The number of the next session of all workers.
    sessions: Arc<AtomicU64>,
    fault: Arc<Once>,
}

impl RabbitMq {
    /// Connects once and declares the topology, or checks that the exchanges and queues for publishing exist.
    pub async fn connect(broker: &settings::RabbitMq, queues: &Queues, items: &Items) -> Result<Self> {
        let trust = Trust { seal: Seal::new(broker), spiders: Vec::new() };
        let broker = Arc::new(Endpoint::new(broker)?);
        let layout = Arc::new(Layout::new(queues)?);
        let publisher = Publisher::new(Arc::clone(&broker), Topology::Publishing(Arc::clone(&layout)));
        let stream = Topology::Stream(Stream::items(items, queues.topology));
        // Missing streams that others declare stop only those who publish to them.
        if queues.topology == settings::Topology::Declare {
            let connection = broker.open("trawl set-up").await?;
            for stream in [&stream, &Topology::Stream(Stream::control(queues.topology))] {
                // Errors that need a change of settings are returned at once; temporary errors of the broker are
                // ignored here.
                let declared = stream.declare(&connection).await;
                declared.or_else(|error| if error.is_temporary() { Ok(()) } else { Err(error) })?;
            }
        }
        publisher.channel().await?;
        Ok(Self {
            layout,
            trust,
            publisher: Arc::new(publisher),
            items: Arc::new(Publisher::new(Arc::clone(&broker), stream)),
            broker,
            consuming: Current::default(),
            sessions: Arc::new(AtomicU64::new(1)),
            fault: Arc::new(Once::new()),
        })
    }

    /// Allows external publishers to name these spiders, if the fleet has a key.
    pub fn open_to_strangers(mut self, spiders: &[SpiderName]) -> Self {
        self.trust.spiders = spiders.to_vec();
        self
    }

    /// Publishes the items of these pages; all are in the stream when this returns.
    pub async fn publish_items(&self, pages: &[Page]) -> Result<()> {
        let items: Vec<&Item> = pages.iter().flat_map(|page| &page.items).collect();
        self.items.send(items.into_iter().map(items::outgoing)).await
    }

    /// Warns once that the broker has a fault by which external publishers can stop the delay ladder.
    fn warn_of_fault(&self) {
        let version = self.broker.server_version();
        if let Some(fault) = version.and_then(|version| examine::fault(&version, &self.layout.queues)) {
            self.fault.call_once(|| warn!("{fault}"));
        }
    }

    /// Returns the session that these receipts belong to, and their tags, without those of older sessions.
    fn current(&self, receipts: &[Receipt]) -> Option<(Arc<ConsumerSession>, Vec<u64>)> {
        let session = self.consuming.get()?;
        let tags: Vec<u64> = receipts
            .iter()
            .filter(|receipt| receipt.session == session.id)
            .map(|receipt| receipt.tag)
            .collect();
        (!tags.is_empty()).then_some((session, tags))
    }
}

#[async_trait]
impl Broker for RabbitMq {
    fn for_worker(&self) -> Arc<dyn Broker> {
        let Self { broker, layout, trust, publisher, items, sessions, fault, .. } = self;
        Arc::new(Self {
            broker: Arc::clone(broker),
            layout: Arc::clone(layout),
            trust: trust.clone(),
            publisher: Arc::clone(publisher),
            items: Arc::clone(items),
            consuming: Current::default(),
            sessions: Arc::clone(sessions),
            fault: Arc::clone(fault),
        })
    }

    async fn publish(&self, messages: &[Message]) -> Result<()> {
        let now = UnixMs::now();
        let outgoing = |message: &Message| {
            let lane = names::source(message.lane.into()).to_owned();
            let to_lane = to_queue(message, lane, &self.trust.seal);
            Outgoing { properties: codec::expiring(to_lane.properties, message.deadline, now), ..to_lane }
        };
        self.publisher.send(messages.iter().map(outgoing)).await?;
        messages.iter().for_each(|message| trace::sent(message, names::source(message.lane.into()), now));
        Ok(())
    }

    async fn park(&self, parked: &[Parked]) -> Result<()> {
        let now = UnixMs::now();
        let outgoing = |parked: &Parked| {
            to_queue(&parked.message, names::rung(rung_until(parked.wake, now)), &self.trust.seal)
        };
        self.publisher.send(parked.iter().map(outgoing)).await?;
        let of_rung = |parked: &Parked| names::rung(rung_until(parked.wake, now));
        let traced = parked.iter().filter(|parked| parked.message.trace.is_some());
        traced.for_each(|parked| trace::sent(&parked.message, &of_rung(parked), now));
        Ok(())
    }

    async fn pass_on(&self, newer: &[Newer], wake: Wake) -> Result<()> {
        let key = names::rung(rung_until(wake, UnixMs::now()));
        let outgoing = |newer: &Newer| {
            let (properties, body) = newer::read(newer)?;
            Ok(Outgoing { exchange: "", key: key.clone(), body, properties, mandatory: true })
        };
        let outgoing: Vec<Outgoing> = newer.iter().map(outgoing).collect::<Result<_>>()?;
        self.publisher.send(outgoing).await
    }

    fn wake(&self, until: UnixMs) -> Wake {
        let now = UnixMs::now();
        Wake::after(now, rung_for(until.wait_from(now)))
    }

    async fn dead_letter(&self, dead_letters: &[DeadLetter]) -> Result<()> {
        let outgoing = |dead_letter: &DeadLetter| Outgoing {
            exchange: names::FAILED_EXCHANGE,
            key: names::FAILED_KEY.to_owned(),
            body: dead_letter.url.clone().into_bytes(),
            properties: codec::dead_letter_properties(dead_letter),
            mandatory: true,
        };
        self.publisher.send(dead_letters.iter().map(outgoing)).await
    }

    /// Only workers that run programs consume tasks, and there may be none.
    async fn probe(&self, times: ProbeTimes) -> Result<Vec<Probe>> {
        let is_idle = self.publisher.is_idle(names::TASKS).await?;
        let (returned, sent): (Vec<SourceQueue>, Vec<SourceQueue>) =
            SourceQueue::ALL.into_iter().partition(|source| *source == SourceQueue::Task && is_idle);
        let outgoing = |source: SourceQueue| Outgoing {
            exchange: "",
            key: names::source(source).to_owned(),
            body: codec::PROBE_BODY.to_vec(),
            properties: codec::probe_properties(Probe { source, times }, &self.trust.seal),
            mandatory: true,
        };
        self.publisher.send(sent.into_iter().map(outgoing)).await?;
        Ok(returned.into_iter().map(|source| Probe { source, times }).collect())
    }

    async fn longest_parked(&self) -> Result<Duration> {
        self.publisher.longest_parked().await
    }

    async fn announce(&self, event: &Event) -> Result<()> {
        self.publisher.send([events::outgoing(event, &self.trust.seal)]).await
    }

    async fn consume(&self, prefetch: u16, tasks: u16) -> Result<Box<dyn Consumer>> {
        let connection = self.broker.open("trawl consumer").await?;
        let lacks_tasks = tasks > 0 && passive::lacks_tasks(&connection, &self.layout).await?;
        let tasks = if lacks_tasks { 0 } else { tasks };
        let takes = if tasks > 0 { Tasks::Taken } else { Tasks::Left };
        Topology::Consuming(Arc::clone(&self.layout), takes).declare(&connection).await?;
        self.warn_of_fault();
        let id = self.sessions.fetch_add(1, Ordering::Relaxed);
        let windows = (prefetch, tasks);
        let (session, consumer) =
            ConsumerSession::open(id, connection, windows, &self.layout, &self.trust).await?;
        self.consuming.set(session);
        Ok(Box::new(consumer))
    }

    async fn ack(&self, receipts: &[Receipt]) -> Result<()> {
        match self.current(receipts) {
            Some((session, tags)) => session.ack(tags).await,
            None => Ok(()),
        }
    }

    async fn release(&self, receipts: &[Receipt]) -> Result<()> {
        match self.current(receipts) {
            Some((session, tags)) => session.release(tags).await,
            None => Ok(()),
        }
    }

    async fn close(&self) -> Result<()> {
        match self.consuming.get() {
            Some(session) => session.close().await,
            None => Ok(()),
        }
    }
}

fn to_queue(message: &Message, queue: String, seal: &Seal) -> Outgoing {
    let body = codec::body(&message.work).into_owned();
    let properties = codec::properties(message, &body, seal);
    Outgoing { exchange: "", key: queue, body, properties, mandatory: true }
}

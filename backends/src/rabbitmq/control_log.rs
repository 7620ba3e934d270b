//! The streams `control`, with the orders about crawls and hosts, and `control.counts`, with the page counts of crawls
//! ([`crate::control_log`]).

use std::sync::Arc;

use trawl_common::ports::Result;
use trawl_common::settings;

use super::connection::Endpoint;
use super::seal::{Purpose, Seal};
use super::signed_stream::{SignedStream, Witness};
use super::topology::Stream;
use crate::control_log::{Counts, Logged, Record};

const PREFETCH: u16 = 1_000;

/// Both streams.
pub struct ControlLog {
    orders: SignedStream,
    counts: SignedStream,
}

impl ControlLog {
    /// Creates the log without connecting.
    pub fn new(broker: &settings::RabbitMq, topology: settings::Topology) -> Result<Self> {
        let seal = Seal::new(broker);
        let broker = Arc::new(Endpoint::new(broker)?);
        let [orders, counts] = [Stream::control(topology), Stream::counts(topology)].map(|stream| {
            SignedStream::new(Arc::clone(&broker), seal.clone(), Purpose::Control, stream, PREFETCH)
        });
        Ok(Self { orders, counts })
    }

    /// Appends a record; it is durable when this returns.
    pub(crate) async fn append(&self, record: &Record) -> Result<()> {
        self.orders.append([record]).await
    }

    /// Returns the state that follows from all records appended before.
    pub(crate) async fn read(&self) -> Result<Logged> {
        let mut logged = Logged::default();
        self.orders.read(|record| logged.apply(record)).await?;
        Ok(logged)
    }

    /// From now on, only signed records count, if the fleet has a key.
    pub(crate) async fn seal(&self) {
        self.orders.seal(Record::Sealed).await;
        self.counts.seal(Counts::default()).await;
    }

    /// Whether the stream of orders has lost nothing since it was complete.
    pub(crate) async fn is_complete(&self) -> bool {
        self.orders.is_complete().await
    }

    /// Starts to watch the stream of orders. Must be called before it is read to be [completed](Self::complete).
    pub(crate) async fn watch(&self) -> Result<Witness> {
        self.orders.watch().await
    }

    /// Appends the orders that the stream lacked. Then it is complete.
    pub(crate) async fn complete(&self, witness: Witness, missing: &[Record]) -> Result<()> {
        self.orders.complete(witness, missing).await
    }

    /// Appends the page counts of crawls.
    pub(crate) async fn append_counts(&self, counts: &Counts) -> Result<()> {
        self.counts.append([counts]).await
    }

    /// Returns the page counts that were appended last.
    pub(crate) async fn read_counts(&self) -> Result<Counts> {
        let mut counts = Counts::default();
        self.counts.read(|entry| counts.apply(entry)).await?;
        Ok(counts)
    }
}

//! The streams `control`, with the orders about crawls and hosts, and `control.counts`, with the page counts of crawls
//! ([`crate::control_log`]).

use std::sync::Arc;

use trawl_common::ports::Result;
use trawl_common::settings;

use super::connection::Endpoint;
use super::seal::{Purpose, Seal};
use super::signed_stream::SignedStream;
use super::topology::Stream;
use crate::control_log::{Counts, Logged, Record};

const PREFETCH: u16 = 1_000;

/// Both streams.
pub struct ControlLog {
    pub(crate) orders: SignedStream,
    pub(crate) counts: SignedStream,
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

    /// Returns the state that follows from all orders appended before.
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

    /// Returns the page counts that were appended last.
    pub(crate) async fn read_counts(&self) -> Result<Counts> {
        let mut counts = Counts::default();
        self.counts.read(|entry| counts.apply(entry)).await?;
        Ok(counts)
    }
}

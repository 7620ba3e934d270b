//! The stream `journal` of submissions ([`crate::journal`]).

use std::sync::Arc;

use tokio::sync::OnceCell;
use tracing::warn;
use trawl_common::ports::{Error, Result};
use trawl_common::settings;
use trawl_common::time::UnixMs;

use super::connection::Endpoint;
use super::names;
use super::seal::{Purpose, Seal};
use super::signed_stream::{SignedStream, Witness};
use super::topology::Stream;
use crate::journal::{JournalEntry, Logged, Record};

/// Low, because an entry may have a megabyte.
const PREFETCH: u16 = 100;

/// The stream. It may be missing on a broker that others configure: then nothing is written, and everything else works.
pub struct Journal {
    stream: SignedStream,
    is_missing: OnceCell<bool>,
}

impl Journal {
    /// Creates the journal without connecting.
    pub fn new(broker: &settings::RabbitMq, topology: settings::Topology) -> Result<Self> {
        let seal = Seal::new(broker);
        let broker = Arc::new(Endpoint::new(broker)?);
        let stream = SignedStream::new(broker, seal, Purpose::Journal, Stream::journal(topology), PREFETCH);
        Ok(Self { stream, is_missing: OnceCell::new() })
    }

    /// Appends records; they are durable when this returns.
    pub(crate) async fn append(&self, records: impl IntoIterator<Item = Record> + Send) -> Result<()> {
        match self.is_missing().await? {
            true => Ok(()),
            false => self.stream.append(entries(records)).await,
        }
    }

    /// Returns the state that follows from all entries appended before.
    pub(crate) async fn read(&self) -> Result<Logged> {
        let mut logged = Logged::default();
        if !self.is_missing().await? {
            self.stream.read(|entry| logged.apply(entry)).await?;
        }
        Ok(logged)
    }

    /// From now on, only signed records count, if the fleet has a key.
    pub(crate) async fn seal(&self) {
        if let Ok(false) = self.is_missing().await {
            self.stream.seal(JournalEntry { at: UnixMs::now(), record: Record::Sealed }).await;
        }
    }

    /// Whether the stream has lost nothing since it was complete.
    pub(crate) async fn is_complete(&self) -> bool {
        self.stream.is_complete().await
    }

    /// Starts to watch the stream. Must be called before it is read to be [completed](Self::complete).
    pub(crate) async fn watch(&self) -> Result<Witness> {
        self.stream.watch().await
    }

    /// Appends the records that the stream lacked. Then it is complete.
    pub(crate) async fn complete(&self, witness: Witness, missing: Vec<Record>) -> Result<()> {
        self.stream.complete(witness, entries(missing)).await
    }

    /// Whether nothing is written because others declare the queues and have not declared the stream.
    pub(crate) async fn is_missing(&self) -> Result<bool> {
        let look = || async {
            let is_missing = self.stream.is_missing().await?;
            if is_missing {
                warn!(
                    queue = names::JOURNAL,
                    "jobs and deployed spiders do not survive a redis that loses data: queues.topology is passive, there is no such \
                     stream, and this user may not declare it. Declare it, and start the programs anew"
                );
            }
            Ok::<_, Error>(is_missing)
        };
        self.is_missing.get_or_try_init(look).await.copied()
    }
}

fn entries(records: impl IntoIterator<Item = Record>) -> impl Iterator<Item = JournalEntry> {
    records.into_iter().map(|record| JournalEntry { at: UnixMs::now(), record })
}

//! The stream `journal`: what was asked for ([`crate::journal`]).

use std::sync::Arc;

use lapin::types::FieldTable;
use lapin::{BasicProperties, Connection};
use tokio::sync::{Mutex, OnceCell};
use tracing::{debug, warn};
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings;
use trawl_common::text::printable;
use trawl_common::time::UnixMs;

use super::connection::Endpoint;
use super::control_log::Belief;
use super::names;
use super::publisher::{Outgoing, Publisher};
use super::seal::{Purpose, Seal};
use super::stream::{self, StreamStart};
use super::topology::{Stream, Topology};
use crate::journal::{Entry, Logged, Record};

/// Entries that the broker sends ahead: one may have a megabyte.
const PREFETCH: u16 = 100;

/// The stream, written and read on connections of its own, which are opened when they are needed.
pub struct Journal {
    broker: Arc<Endpoint>,
    seal: Seal,
    publisher: Publisher,
    stream: Stream,
    /// Whether nothing is written, as those who declare the queues have not declared the stream.
    is_missing: OnceCell<bool>,
    /// Was open when the stream was complete. A broker that is emptied closes its connections: while this one is open, the
    /// stream still has all of it.
    witness: Mutex<Option<Connection>>,
}

/// A journal that may lack entries.
pub(crate) struct InDoubt {
    /// What it has.
    pub(crate) logged: Logged,
    witness: Connection,
}

impl Journal {
    /// Connects to nothing yet.
    pub fn new(broker: &settings::RabbitMq, topology: settings::Topology) -> Result<Self> {
        let seal = Seal::new(broker);
        let broker = Arc::new(Endpoint::new(broker)?);
        let stream = Stream::journal(topology);
        let publisher = Publisher::new(Arc::clone(&broker), Topology::Stream(stream));
        Ok(Self { broker, seal, publisher, stream, is_missing: OnceCell::new(), witness: Mutex::default() })
    }

    /// Adds records; they are durable when this returns.
    pub(crate) async fn append(&self, records: impl IntoIterator<Item = Record> + Send) -> Result<()> {
        if self.is_missing().await? {
            return Ok(());
        }
        let outgoing = records.into_iter().map(|record| self.outgoing(record)).collect::<Result<Vec<_>>>()?;
        self.publisher.send(outgoing).await
    }

    /// Ends the time from which records count that nobody signed, if the fleet has a key.
    pub(crate) async fn seal(&self) {
        if self.seal.is_set()
            && let Err(error) = self.append([Record::Sealed]).await
        {
            debug!(%error, "the stream journal is not sealed; the next process to start does it");
        }
    }

    /// Whether the broker may have been emptied since the journal was complete.
    pub(crate) async fn is_in_doubt(&self) -> bool {
        !self.witness.lock().await.as_ref().is_some_and(|connection| connection.status().connected())
    }

    /// What the stream has, to be [completed](Self::complete).
    pub(crate) async fn doubt(&self) -> Result<InDoubt> {
        // First: a broker that is emptied from here on closes it.
        let witness = self.broker.open("trawl journal").await?;
        Ok(InDoubt { logged: self.read().await?, witness })
    }

    /// Adds what the stream lacked. Then it is complete.
    pub(crate) async fn complete(
        &self,
        InDoubt { witness, .. }: InDoubt,
        missing: Vec<Record>,
    ) -> Result<()> {
        self.append(missing).await?;
        *self.witness.lock().await = Some(witness);
        Ok(())
    }

    /// What all entries say that were added before.
    pub(crate) async fn read(&self) -> Result<Logged> {
        let mut logged = Logged::default();
        if self.is_missing().await? {
            return Ok(logged);
        }
        let connection = self.broker.open("trawl journal").await?;
        Topology::Stream(self.stream).declare(&connection).await?;
        let mut reader = stream::read(connection, names::JOURNAL, StreamStart::First, PREFETCH).await?;
        let (mut belief, mut has_newer) = (Belief::default(), false);
        loop {
            let entry = reader.next_before_end().await?;
            if let Some(body) = &entry.body
                && belief.has(entry.offset, self.seal.author(Purpose::Journal, body, &entry.headers))
            {
                match Entry::read(body) {
                    Ok(Some(entry)) => logged.apply(entry),
                    Ok(None) => has_newer = true,
                    Err(error) => {
                        let text = printable(&String::from_utf8_lossy(body), 200);
                        warn!(offset = entry.offset, %error, text, "an unreadable entry in the stream journal");
                    }
                }
            }
            // The reader's own mark is there, or a later one.
            if entry.offset >= reader.end() {
                if has_newer {
                    warn!(
                        "the stream journal has entries of a newer trawl: they are left to newer programs. Update this one"
                    );
                }
                return Ok(logged);
            }
            reader.done(&entry).await?;
        }
    }

    /// A broker that others configure may not have the stream yet: all else goes on.
    async fn is_missing(&self) -> Result<bool> {
        let look = || async {
            let is_missing = self.stream.is_missing(&self.broker.open("trawl journal").await?).await?;
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

    fn outgoing(&self, record: Record) -> Result<Outgoing> {
        let body = serde_json::to_vec(&Entry { at: UnixMs::now(), record });
        let body = body.map_err(|error| {
            Error::new(ErrorKind::Refused, format_args!("what cannot be written: {error}"))
        })?;
        let mut headers = FieldTable::default();
        self.seal.sign(Purpose::Journal, &body, &mut headers);
        Ok(Outgoing {
            exchange: "",
            key: names::JOURNAL.to_owned(),
            body,
            properties: BasicProperties::default()
                .with_delivery_mode(2)
                .with_content_type("application/json".into())
                .with_headers(headers),
            mandatory: true,
        })
    }
}

//! The stream `control`: what was ordered of crawls and hosts ([`crate::control_log`]).

use std::sync::Arc;

use lapin::types::FieldTable;
use lapin::{BasicProperties, Connection};
use tokio::sync::Mutex;
use tracing::{debug, warn};
use trawl_common::ports::Result;
use trawl_common::settings;
use trawl_common::text::printable;

use super::connection::Endpoint;
use super::names;
use super::publisher::{Outgoing, Publisher};
use super::seal::{Author, Purpose, Seal};
use super::stream::{self, StreamStart};
use super::topology::{Stream, Topology};
use crate::control_log::{Logged, Record};

/// Records that the broker sends ahead.
const PREFETCH: u16 = 1_000;

/// The stream, written and read on connections of its own, which are opened when they are needed.
pub struct ControlLog {
    broker: Arc<Endpoint>,
    seal: Seal,
    publisher: Publisher,
    topology: Topology,
    /// Was open when the stream was complete. A broker that is emptied closes its connections: while this one is open, the
    /// stream still has all of it.
    witness: Mutex<Option<Connection>>,
}

/// A stream that may lack records.
pub(crate) struct InDoubt {
    /// What it has.
    pub(crate) logged: Logged,
    witness: Connection,
}

impl ControlLog {
    /// Connects to nothing yet.
    pub fn new(broker: &settings::RabbitMq, topology: settings::Topology) -> Result<Self> {
        let seal = Seal::new(broker);
        let broker = Arc::new(Endpoint::new(broker)?);
        let topology = Topology::Stream(Stream::control(topology));
        let publisher = Publisher::new(Arc::clone(&broker), topology.clone());
        Ok(Self { broker, seal, publisher, topology, witness: Mutex::default() })
    }

    /// Adds a record; it is durable when this returns.
    pub(crate) async fn append(&self, record: &Record) -> Result<()> {
        self.publisher.send([self.outgoing(record)]).await
    }

    /// What the stream has, if the broker may have been emptied since it was complete.
    pub(crate) async fn in_doubt(&self) -> Result<Option<InDoubt>> {
        if self.witness.lock().await.as_ref().is_some_and(|connection| connection.status().connected()) {
            return Ok(None);
        }
        // First: a broker that is emptied from here on closes it.
        let witness = self.broker.open("trawl control").await?;
        Ok(Some(InDoubt { logged: self.read().await?, witness }))
    }

    /// Adds what the stream lacked. Then it is complete.
    pub(crate) async fn complete(&self, InDoubt { witness, .. }: InDoubt, missing: &[Record]) -> Result<()> {
        let outgoing: Vec<Outgoing> = missing.iter().map(|record| self.outgoing(record)).collect();
        self.publisher.send(outgoing).await?;
        *self.witness.lock().await = Some(witness);
        Ok(())
    }

    fn outgoing(&self, record: &Record) -> Outgoing {
        // Names and numbers: they always serialise.
        let body = serde_json::to_vec(record).unwrap_or_default();
        let mut headers = FieldTable::default();
        self.seal.sign(Purpose::Control, &body, &mut headers);
        Outgoing {
            exchange: "",
            key: names::CONTROL.to_owned(),
            body,
            properties: BasicProperties::default()
                .with_delivery_mode(2)
                .with_content_type("application/json".into())
                .with_headers(headers),
            mandatory: true,
        }
    }

    /// Ends the time from which records count that nobody signed, if the fleet has a key.
    pub(crate) async fn seal(&self) {
        if self.seal.is_set()
            && let Err(error) = self.append(&Record::Sealed).await
        {
            debug!(%error, "the stream control is not sealed; the next process to start does it");
        }
    }

    /// What all records say that were added before.
    pub(crate) async fn read(&self) -> Result<Logged> {
        let connection = self.broker.open("trawl control").await?;
        self.topology.declare(&connection).await?;
        let mut reader = stream::read(connection, names::CONTROL, StreamStart::First, PREFETCH).await?;
        let mut logged = Logged::default();
        let mut belief = Belief::default();
        let mut has_newer = false;
        loop {
            let entry = reader.next_before_end().await?;
            if let Some(body) = &entry.body
                && belief.has(entry.offset, self.seal.author(Purpose::Control, body, &entry.headers))
            {
                match Record::read(body) {
                    Ok(Some(record)) => logged.apply(record),
                    Ok(None) => has_newer = true,
                    Err(error) => {
                        let text = printable(&String::from_utf8_lossy(body), 200);
                        warn!(offset = entry.offset, %error, text, "an unreadable record in the stream control");
                    }
                }
            }
            // The reader's own mark is there, or a later one.
            if entry.offset >= reader.end() {
                if has_newer {
                    warn!(
                        "the stream control has entries of a newer trawl: they are left to newer programs. Update this one"
                    );
                }
                return Ok(logged);
            }
            reader.done(&entry).await?;
        }
    }
}

/// Which records count. Those that nobody signed are from before the fleet had a key, as long as the stream still has its
/// beginning and no signed one came before them.
#[derive(Default)]
pub(super) struct Belief {
    /// Whether records without a signature count; not known before the first.
    unsigned: Option<bool>,
}

impl Belief {
    pub(super) fn has(&mut self, offset: u64, author: Author) -> bool {
        let unsigned = self.unsigned.get_or_insert(offset == 0);
        match author {
            Author::Anyone => true,
            Author::Stranger => *unsigned,
            Author::Fleet => {
                *unsigned = false;
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Author::{Fleet, Stranger};
    use super::*;

    fn believed(first: u64, authors: &[Author]) -> Vec<bool> {
        let mut belief = Belief::default();
        (first..).zip(authors).map(|(offset, author)| belief.has(offset, *author)).collect()
    }

    #[test]
    fn records_from_before_there_was_a_key_count_and_what_is_forged_after_it_does_not() {
        assert_eq!(
            believed(0, &[Stranger, Stranger, Fleet, Stranger, Fleet]),
            [true, true, true, false, true]
        );
        // A stream that has lost its beginning may have lost it to whoever wrote so much.
        assert_eq!(believed(1, &[Stranger, Fleet, Stranger]), [false, true, false]);
        assert_eq!(believed(7, &[Author::Anyone]), [true]);
    }
}

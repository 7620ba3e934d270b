//! The stream `control`: what was ordered of crawls and hosts ([`crate::control_log`]).

use std::sync::Arc;

use futures::{FutureExt, StreamExt};
use lapin::options::BasicAckOptions;
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection};
use serde::Serialize;
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
use crate::control_log::{Counts, Logged, Record};

/// Records that the broker sends ahead.
const PREFETCH: u16 = 1_000;

/// The stream, written and read on connections of its own, which are opened when they are needed.
pub struct ControlLog {
    broker: Arc<Endpoint>,
    seal: Seal,
    publisher: Publisher,
    topology: Topology,
    /// Of the stream of counts.
    counting: (Publisher, Topology),
    /// Has watched the stream since it was complete.
    witness: Mutex<Option<Witness>>,
}

/// Reads the stream without need of what it says. A broker that is emptied closes its connections, and one whose stream is deleted ends the
/// reading: while neither has happened, the stream still has all of it.
struct Witness {
    consumer: lapin::Consumer,
    _channel: Channel,
    connection: Connection,
}

impl Witness {
    async fn is_undisturbed(&mut self) -> bool {
        while let Some(delivered) = self.consumer.next().now_or_never() {
            let Some(Ok(delivery)) = delivered else { return false };
            if delivery.acker.ack(BasicAckOptions::default()).await.is_err() {
                return false;
            }
        }
        self.connection.status().connected()
    }
}

/// A stream that may lack records.
pub(crate) struct InDoubt {
    /// What it has.
    pub(crate) logged: Logged,
    witness: Witness,
}

impl ControlLog {
    /// Connects to nothing yet.
    pub fn new(broker: &settings::RabbitMq, topology: settings::Topology) -> Result<Self> {
        let seal = Seal::new(broker);
        let broker = Arc::new(Endpoint::new(broker)?);
        let [counts, topology] = [Stream::counts(topology), Stream::control(topology)].map(Topology::Stream);
        let [counting, publisher] =
            [&counts, &topology].map(|stream| Publisher::new(Arc::clone(&broker), stream.clone()));
        Ok(Self {
            broker,
            seal,
            publisher,
            topology,
            counting: (counting, counts),
            witness: Mutex::default(),
        })
    }

    /// Adds a record; it is durable when this returns.
    pub(crate) async fn append(&self, record: &Record) -> Result<()> {
        self.publisher.send([self.outgoing(names::CONTROL, record)]).await
    }

    /// Notes how many pages crawls have done.
    pub(crate) async fn append_counts(&self, counts: &Counts) -> Result<()> {
        self.counting.0.send([self.outgoing(names::COUNTS, counts)]).await
    }

    /// How many pages crawls had done when that was noted last.
    pub(crate) async fn read_counts(&self) -> Result<Counts> {
        let mut counts = Counts::default();
        let mut unreadable = 0;
        let take = |_, body: &[u8], author: Author| match serde_json::from_slice(body) {
            Ok(entry) if author != Author::Stranger => counts.apply(entry),
            _ => unreadable += 1,
        };
        self.read_entries(names::COUNTS, &self.counting.1, take).await?;
        if unreadable > 0 {
            warn!(
                entries = unreadable,
                "entries of the stream control.counts count for nothing: another wrote them"
            );
        }
        Ok(counts)
    }

    /// What the stream has, if it may have lost entries since it was complete: the broker was emptied, or somebody has deleted it.
    pub(crate) async fn in_doubt(&self) -> Result<Option<InDoubt>> {
        let mut known = self.witness.lock().await;
        if let Some(witness) = known.as_mut()
            && witness.is_undisturbed().await
        {
            return Ok(None);
        }
        *known = None;
        // First: it notices what becomes of the stream from here on.
        let connection = self.broker.open("trawl control").await?;
        self.topology.declare(&connection).await?;
        let (channel, consumer) = stream::consume(&connection, names::CONTROL, StreamStart::Next, 1).await?;
        let witness = Witness { consumer, _channel: channel, connection };
        Ok(Some(InDoubt { logged: self.read().await?, witness }))
    }

    /// Adds what the stream lacked. Then it is complete.
    pub(crate) async fn complete(&self, InDoubt { witness, .. }: InDoubt, missing: &[Record]) -> Result<()> {
        let outgoing: Vec<Outgoing> =
            missing.iter().map(|record| self.outgoing(names::CONTROL, record)).collect();
        self.publisher.send(outgoing).await?;
        *self.witness.lock().await = Some(witness);
        Ok(())
    }

    fn outgoing(&self, stream: &str, entry: &impl Serialize) -> Outgoing {
        // Names and numbers: they always serialise.
        let body = serde_json::to_vec(entry).unwrap_or_default();
        let mut headers = FieldTable::default();
        self.seal.sign(Purpose::Control, &body, &mut headers);
        Outgoing {
            exchange: "",
            key: stream.to_owned(),
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
        let mut logged = Logged::default();
        let mut belief = Belief::default();
        let mut has_newer = false;
        let take = |offset: u64, body: &[u8], author: Author| {
            if !belief.has(offset, author) {
                return;
            }
            match Record::read(body) {
                Ok(Some(record)) => logged.apply(record),
                Ok(None) => has_newer = true,
                Err(error) => {
                    let text = printable(&String::from_utf8_lossy(body), 200);
                    warn!(offset, %error, text, "an unreadable record in the stream control");
                }
            }
        };
        self.read_entries(names::CONTROL, &self.topology, take).await?;
        if has_newer {
            warn!(
                "the stream control has entries of a newer trawl: they are left to newer programs. Update this one"
            );
        }
        Ok(logged)
    }

    /// Gives to `take` the offset, body and author of every entry that was added before.
    async fn read_entries(
        &self,
        stream: &'static str,
        topology: &Topology,
        mut take: impl FnMut(u64, &[u8], Author) + Send,
    ) -> Result<()> {
        let connection = self.broker.open("trawl control").await?;
        topology.declare(&connection).await?;
        let mut reader = stream::read(connection, stream, StreamStart::First, PREFETCH).await?;
        loop {
            let entry = reader.next_before_end().await?;
            if let Some(body) = &entry.body {
                take(entry.offset, body, self.seal.author(Purpose::Control, body, &entry.headers));
            }
            // The reader's own mark is there, or a later one.
            if entry.offset >= reader.end() {
                return Ok(());
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

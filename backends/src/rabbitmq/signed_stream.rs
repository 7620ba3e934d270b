//! A stream of records that trawl's processes write for each other, signed with the fleet's key: the fleet's storage
//! outside Redis.

use std::sync::Arc;

use futures::FutureExt;
use lapin::BasicProperties;
use lapin::options::BasicAckOptions;
use lapin::types::FieldTable;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tracing::{debug, warn};
use trawl_common::format::parse_entry;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::text::printable;

use super::connection::Endpoint;
use super::erased::{Channel, Connection, Incoming};
use super::publisher::{Outgoing, Publisher};
use super::seal::{Author, Purpose, Seal};
use super::stream::{self, StreamStart};
use super::topology::{Stream, Topology};

/// One stream with its own connections for writing and reading, opened when needed.
pub(crate) struct SignedStream {
    broker: Arc<Endpoint>,
    seal: Seal,
    purpose: Purpose,
    publisher: Publisher,
    stream: Stream,
    /// Number of entries that the broker sends before they are acknowledged.
    prefetch: u16,
    /// A reader that has been watching the stream since it was complete.
    witness: Mutex<Option<Witness>>,
}

/// Reads the stream without using its content. A broker that is emptied closes its connections, and deleting the stream
/// ends the reading: until either happens, the stream still has all entries.
pub(crate) struct Witness {
    consumer: Incoming,
    _channel: Channel,
    connection: Connection,
}

impl SignedStream {
    /// Creates the stream without connecting.
    pub(super) fn new(
        broker: Arc<Endpoint>,
        seal: Seal,
        purpose: Purpose,
        stream: Stream,
        prefetch: u16,
    ) -> Self {
        let publisher = Publisher::new(Arc::clone(&broker), Topology::Stream(stream));
        Self { broker, seal, purpose, publisher, stream, prefetch, witness: Mutex::default() }
    }

    /// Appends entries; they are durable when this returns.
    pub(crate) async fn append<E: Serialize>(&self, entries: impl IntoIterator<Item = E>) -> Result<()> {
        let outgoing = entries.into_iter().map(|entry| self.outgoing(&entry)).collect::<Result<Vec<_>>>()?;
        self.publisher.send(outgoing).await
    }

    /// Appends an entry without other content, so that unsigned ones no longer count, if the fleet has a key.
    pub(super) async fn seal(&self, entry: impl Serialize) {
        if self.seal.is_set()
            && let Err(error) = self.append([entry]).await
        {
            let stream = self.stream.name();
            debug!(%error, stream, "the stream is not sealed; the next process to start does it");
        }
    }

    /// Passes every entry that was added before and that counts to `apply`.
    pub(super) async fn read<E: DeserializeOwned>(&self, mut apply: impl FnMut(E) + Send) -> Result<()> {
        let name = self.stream.name();
        let connection = self.connect().await?;
        let mut reader = stream::read(connection, name, StreamStart::First, self.prefetch).await?;
        let mut belief = Belief::default();
        let mut has_newer = false;
        loop {
            let entry = reader.next_before_end().await?;
            if let Some(body) = &entry.body
                && belief.has(entry.offset, self.seal.author(self.purpose, body, &entry.headers))
            {
                match parse_entry(body) {
                    Ok(Some(entry)) => apply(entry),
                    Ok(None) => has_newer = true,
                    Err(error) => {
                        let text = printable(&String::from_utf8_lossy(body), 200);
                        warn!(stream = name, offset = entry.offset, %error, text, "an unreadable entry");
                    }
                }
            }
            // This is the reader's own mark, or a later one.
            if entry.offset >= reader.end() {
                break;
            }
            reader.done(&entry).await?;
        }
        if has_newer {
            warn!(
                stream = name,
                "it has entries of a newer trawl: they are left to newer programs. Update this one"
            );
        }
        Ok(())
    }

    /// Whether the stream has lost nothing since it was [complete](Self::complete): the broker was not emptied, and the
    /// stream was not deleted.
    pub(crate) async fn is_complete(&self) -> bool {
        let mut known = self.witness.lock().await;
        let is_complete = match known.as_mut() {
            Some(witness) => witness.is_undisturbed().await,
            None => false,
        };
        if !is_complete {
            *known = None;
        }
        is_complete
    }

    /// Starts to watch the stream. Must be called before it is read: the witness notices what happens to the stream
    /// from here on.
    pub(crate) async fn watch(&self) -> Result<Witness> {
        let connection = self.connect().await?;
        let (channel, consumer) =
            stream::consume(&connection, self.stream.name(), StreamStart::Next, 1).await?;
        Ok(Witness { consumer, _channel: channel, connection })
    }

    /// Appends the entries that the stream lacked when it was read. Then it is complete for as long as `witness`
    /// notices nothing.
    pub(crate) async fn complete<E: Serialize>(
        &self,
        witness: Witness,
        missing: impl IntoIterator<Item = E>,
    ) -> Result<()> {
        self.append(missing).await?;
        *self.witness.lock().await = Some(witness);
        Ok(())
    }

    /// Whether others have to declare the stream, and have not.
    pub(super) async fn is_missing(&self) -> Result<bool> {
        self.stream.is_missing(&self.broker.open(self.connection_name()).await?).await
    }

    async fn connect(&self) -> Result<Connection> {
        let connection = self.broker.open(self.connection_name()).await?;
        Topology::Stream(self.stream).declare(&connection).await?;
        Ok(connection)
    }

    fn connection_name(&self) -> &'static str {
        match self.purpose {
            Purpose::Journal => "trawl journal",
            _ => "trawl control",
        }
    }

    fn outgoing(&self, entry: &impl Serialize) -> Result<Outgoing> {
        let body = serde_json::to_vec(entry).map_err(|error| {
            let stream = self.stream.name();
            Error::new(ErrorKind::Refused, format_args!("cannot write to the stream {stream}: {error}"))
        })?;
        let mut headers = FieldTable::default();
        self.seal.sign(self.purpose, &body, &mut headers);
        let properties = BasicProperties::default()
            .with_delivery_mode(2)
            .with_content_type("application/json".into())
            .with_headers(headers);
        let key = self.stream.name().to_owned();
        Ok(Outgoing { exchange: "", key, body, properties, mandatory: true })
    }
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

/// Decides which entries count. Unsigned ones are from before the fleet had a key, as long as the stream still has its
/// beginning and no signed one came before them.
#[derive(Default)]
struct Belief {
    /// Whether entries without a signature count; unknown before the first entry.
    unsigned: Option<bool>,
}

impl Belief {
    fn has(&mut self, offset: u64, author: Author) -> bool {
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
    fn entries_from_before_there_was_a_key_count_and_what_is_forged_after_it_does_not() {
        assert_eq!(
            believed(0, &[Stranger, Stranger, Fleet, Stranger, Fleet]),
            [true, true, true, false, true]
        );
        // The beginning of the stream may have been pushed out by an external publisher that wrote that much.
        assert_eq!(believed(1, &[Stranger, Fleet, Stranger]), [false, true, false]);
        assert_eq!(believed(7, &[Author::Anyone]), [true]);
    }
}

//! The queue over the frontier's own records.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::oneshot;
use tokio::time::timeout;
use trawl_common::frontier::crawl::Books;
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::ladder::Wake;
use trawl_common::frontier::message::Message;
use trawl_common::ports::Result;
use trawl_common::time::UnixMs;
use trawl_engine::{Broker, Consumer, Content, Delivery, Mark, Parked, Receipt};

use super::lines::{Pull, Want};
use super::records::{self, Address, Addressed, Stored};
use super::store::{Store, answered};
use super::transitions;

/// Hands out the records of one state file. A receipt's tag is the record's row.
pub(super) struct EmbeddedBroker {
    store: Arc<Store>,
}

impl EmbeddedBroker {
    /// The queue in `store`.
    pub(super) fn new(store: Arc<Store>) -> Self {
        Self { store }
    }
}

#[async_trait]
impl Broker for EmbeddedBroker {
    /// An admitted URL is available already; one that someone publishes by hand gets its record here.
    async fn publish(&self, messages: &[Message]) -> Result<()> {
        let by_hand = messages.iter().filter(|message| message.crawl.is_adhoc());
        let by_hand: Vec<_> =
            by_hand.map(|message| (Address::new(&message.crawl, &message.url), message.clone())).collect();
        if by_hand.is_empty() {
            return Ok(());
        }
        self.store
            .call(move |db, memory| {
                by_hand.iter().try_for_each(|message| transitions::admit_on_the_spot(db, memory, message))
            })
            .await
    }

    /// The frontier has put the records aside; what is left to note is what each message carries besides.
    async fn park(&self, parked: &[Parked]) -> Result<()> {
        let addressed = |parked: &Parked| {
            let message = parked.message.clone();
            (Address::new(&message.crawl, &message.url), message)
        };
        let parked: Vec<Addressed<Message>> = parked.iter().map(addressed).collect();
        self.store
            .call(move |db, memory| {
                for (address, message) in parked {
                    if let Some(id) = records::row_of(db, &mut memory.seen, &address)? {
                        records::set_luggage(db, id, &message)?;
                    }
                }
                memory.lines.stir();
                Ok(())
            })
            .await
    }

    /// At that very instant: there are no rungs here.
    fn wake(&self, until: UnixMs) -> Wake {
        Wake { at: until, wait: until.wait_from(UnixMs::now()) }
    }

    /// Nothing to store: what failed is in its crawl's list, where people find it, and what is no message
    /// cannot get in here.
    async fn dead_letter(&self, _letters: &[DeadLetter]) -> Result<()> {
        Ok(())
    }

    /// Nothing to do: a record and its message are one.
    async fn probe(&self, _mark: Mark) -> Result<()> {
        Ok(())
    }

    /// Zero: there is no message that is not a record.
    async fn longest_parked(&self) -> Result<Duration> {
        Ok(Duration::ZERO)
    }

    /// Nothing to do: in one process nobody listens.
    async fn announce(&self, _ended: &Books) -> Result<()> {
        Ok(())
    }

    async fn consume(&self, prefetch: u16) -> Result<Box<dyn Consumer>> {
        let session = self.store.call(|_, memory| Ok(memory.lines.begin_session())).await?;
        Ok(Box::new(EmbeddedConsumer {
            store: self.store.clone(),
            session,
            prefetch: usize::from(prefetch.max(1)),
            pulling: None,
            ready: VecDeque::new(),
        }))
    }

    async fn ack(&self, receipts: &[Receipt]) -> Result<()> {
        let receipts = receipts.to_vec();
        self.store
            .call(move |_, memory| {
                receipts.iter().for_each(|receipt| memory.lines.settle(receipt));
                Ok(())
            })
            .await
    }

    /// The same as to ack: whether a record comes again is up to its state, which the frontier keeps.
    async fn release(&self, receipts: &[Receipt]) -> Result<()> {
        self.ack(receipts).await
    }
}

/// Takes records as they become available. Dropping it settles all that it was given.
struct EmbeddedConsumer {
    store: Arc<Store>,
    session: u64,
    prefetch: usize,
    /// A pull whose answer a cancelled call left behind.
    pulling: Option<oneshot::Receiver<Result<Pull>>>,
    /// What the last pull brought beyond what the call asked for.
    ready: VecDeque<Stored>,
}

impl EmbeddedConsumer {
    /// Asks the store once. Cancelled, it leaves the answer to the next call.
    async fn pull(&mut self, max: usize) -> Result<Pull> {
        let want = Want { session: self.session, prefetch: self.prefetch, max };
        let store = &self.store;
        let pulling = self.pulling.get_or_insert_with(|| {
            store.submit(move |db, memory| memory.lines.pull(db, &memory.hands, &want))
        });
        let answer = pulling.await;
        self.pulling = None;
        answered(answer)
    }

    fn deliver(&mut self, max: usize) -> Result<Vec<Delivery>> {
        let count = max.min(self.ready.len());
        let session = self.session;
        let deliver = |record: Stored| {
            let receipt = Receipt { session, tag: record.id as u64 };
            Ok(Delivery { content: Content::Message(record.message()?), receipt })
        };
        self.ready.drain(..count).map(deliver).collect()
    }
}

#[async_trait]
impl Consumer for EmbeddedConsumer {
    async fn next(&mut self, max: usize) -> Result<Vec<Delivery>> {
        let max = max.max(1);
        let store = self.store.clone();
        while self.ready.is_empty() {
            // Listening starts before looking, so that nothing can slip in between.
            let stirred = store.stirred();
            let is_old = self.pulling.is_some();
            let pull = self.pull(max).await?;
            self.ready.extend(pull.records);
            // An old answer says nothing about now.
            if !self.ready.is_empty() || is_old {
                continue;
            }
            match pull.next_due {
                // Running out of time is what it waits for.
                Some(due) => drop(timeout(due.wait_from(UnixMs::now()), stirred).await),
                None => stirred.await,
            }
        }
        self.deliver(max)
    }
}

impl Drop for EmbeddedConsumer {
    fn drop(&mut self) {
        let session = self.session;
        drop(self.store.submit(move |_, memory| {
            memory.lines.end_session(session);
            Ok(())
        }));
    }
}

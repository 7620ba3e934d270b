//! The broker: messages on their way to a worker.

use std::time::Duration;

use async_trait::async_trait;
use trawl_common::events::Event;
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::ladder::Wake;
use trawl_common::frontier::message::{Malformed, Message};
use trawl_common::names::CrawlRef;
use trawl_common::ports::Result;
use trawl_common::time::UnixMs;

use crate::records::{Probe, ProbeTimes};

/// Delivers messages, durably and at least once.
///
/// Every publishing call returns only when all that it was given is stored durably (the broker has
/// confirmed it). On an error any part may have been stored. Repeating the call is harmless: a
/// message too many is dropped when it is claimed.
#[async_trait]
pub trait Broker: Send + Sync {
    /// Sends each message to its lane.
    async fn publish(&self, messages: &[Message]) -> Result<()>;

    /// Stores each message until its wake-up time, and never delivers it earlier, however long ago that time was
    /// decided. Then it comes before all others.
    async fn park(&self, parked: &[Parked]) -> Result<()>;

    /// Stores each message of a newer format until then, unchanged, for other workers.
    async fn pass_on(&self, newer: &[Newer], wake: Wake) -> Result<()>;

    /// Decides when a message that waits until `until` comes back: then, or earlier, to be parked again.
    fn wake(&self, until: UnixMs) -> Wake;

    /// Stores dead letters where people and other programs find them.
    async fn dead_letter(&self, dead_letters: &[DeadLetter]) -> Result<()>;

    /// Sends a probe with these times through every queue that workers take from. Returns those that need not come back: their queue is
    /// empty, and no worker takes from it.
    async fn probe(&self, times: ProbeTimes) -> Result<Vec<Probe>>;

    /// How long it takes at most until all that is parked now has come back; zero if nothing is.
    async fn longest_parked(&self) -> Result<Duration>;

    /// Publishes an event to its subscribers. A repeated event has the same id.
    async fn announce(&self, event: &Event) -> Result<()>;

    /// Starts to take messages, with at most `prefetch` unacknowledged ones of each lane of URLs, and `tasks` of the lane of tasks. With 0
    /// tasks, that lane is left to other workers.
    async fn consume(&self, prefetch: u16, tasks: u16) -> Result<Box<dyn Consumer>>;

    /// Deletes the messages behind these receipts. A receipt from before a reconnect is ignored:
    /// its message comes again.
    async fn ack(&self, receipts: &[Receipt]) -> Result<()>;

    /// Gives the messages behind these receipts back, for any worker to take.
    async fn release(&self, receipts: &[Receipt]) -> Result<()>;
}

/// A stream of deliveries.
#[async_trait]
pub trait Consumer: Send {
    /// Waits for messages and returns between one and `max`, in the order of [`trawl_common::frontier::line::Line`]: parked ones
    /// whose time has come first, then the priority lane, what expired, tasks, then bulk. Cancelling the call loses
    /// nothing.
    ///
    /// An error ends this consumer: what it delivered and was not acked will come again.
    async fn next(&mut self, max: usize) -> Result<Vec<Delivery>>;
}

/// What a worker has received, until its receipt is acked or released.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// What it is.
    pub content: Content,
    /// For its acknowledgement.
    pub receipt: Receipt,
}

/// What a queue can deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A wake-up for a URL or a task.
    Message(Message),
    /// A probe of the fleet's own.
    Probe(Probe),
    /// Something that is neither.
    Malformed(Malformed),
    /// One of the fleet's own messages, of a format that only newer workers read.
    Newer(Newer),
    /// A message that claims to be the fleet's own and is not signed by its key: forged, or older than the key.
    Unproven(Unproven),
}

/// A message of a format that this program does not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newer {
    /// The format.
    pub format: u64,
    /// The whole message, serialised by the adapter that received it.
    pub message: Vec<u8>,
}

/// What claims to be the fleet's own and cannot prove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unproven {
    /// A probe. It counts for nothing.
    Probe,
    /// A wake-up for a URL of this crawl.
    Message {
        /// What it is without that claim: a stranger's request for its URL.
        request: Box<Message>,
        /// The crawl that it names. If that exists, its record sends the URL again.
        crawl: CrawlRef,
    },
}

/// Names one delivery to the adapter that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Receipt {
    /// Which channel or session delivered it.
    pub session: u64,
    /// Which delivery of that session.
    pub tag: u64,
}

/// A message to park, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    /// The message.
    pub message: Message,
    /// When it is to come back.
    pub wake: Wake,
}

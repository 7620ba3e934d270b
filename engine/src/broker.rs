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

/// Carries messages, durably and at least once.
///
/// Every publishing call returns only when all that it was given is stored durably (the broker has
/// confirmed it). On an error any part may have been stored: repeating the call is harmless, for a
/// message too many is dropped when it is claimed.
#[async_trait]
pub trait Broker: Send + Sync {
    /// Sends each message to its lane.
    async fn publish(&self, messages: &[Message]) -> Result<()>;

    /// Stores each message out of the way until its wake, and never brings it before that, however long ago that was
    /// decided; then it comes before all others.
    async fn park(&self, parked: &[Parked]) -> Result<()>;

    /// Decides when a message that is to wait until `until` comes back: then, or earlier and to be parked again.
    fn wake(&self, until: UnixMs) -> Wake;

    /// Stores dead letters where people and other programs find them.
    async fn dead_letter(&self, dead_letters: &[DeadLetter]) -> Result<()>;

    /// Sends a probe with these times through every line. Returns those that need not come back: nobody takes from their line, and
    /// nothing is in it.
    async fn probe(&self, times: ProbeTimes) -> Result<Vec<Probe>>;

    /// How long it takes at most until all that is parked now has come back; zero if nothing is.
    async fn longest_parked(&self) -> Result<Duration>;

    /// Tells whoever listens what happened. Told again, it is the same event, with the same id.
    async fn announce(&self, event: &Event) -> Result<()>;

    /// Starts to take messages, with at most `prefetch` of each lane of URLs on their way or unsettled, and of the lane of tasks
    /// `tasks`: with none it is left to others.
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
    /// What to settle it with.
    pub receipt: Receipt,
}

/// What can come out of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A wake-up for a URL or a task.
    Message(Message),
    /// A probe of the fleet's own.
    Probe(Probe),
    /// Something that is neither.
    Malformed(Malformed),
    /// Something that says it is the fleet's own, and is not signed by its key: forged, or from before there was one.
    Unproven(Unproven),
}

/// What claims to be the fleet's own and cannot prove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unproven {
    /// A probe. It counts for nothing.
    Probe,
    /// A wake-up for a URL of this crawl.
    Message {
        /// What is left of it: a stranger's request for its URL.
        request: Box<Message>,
        /// The crawl that it names. If there is that, its record sends the URL on its way again.
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

/// A message to store out of the way, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    /// The message.
    pub message: Message,
    /// When it is to come back.
    pub wake: Wake,
}

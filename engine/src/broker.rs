//! The broker: carries messages to workers.

use std::sync::Arc;
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
/// Every publishing call returns only when the broker has confirmed that all messages are stored durably. On
/// an error any part may have been stored. Repeating the call is harmless: a duplicate message is dropped
/// when it is claimed.
#[async_trait]
pub trait Broker: Send + Sync {
    /// Returns the broker for one worker of the process. Receipts are valid there alone, and so is the end of consuming.
    fn for_worker(&self) -> Arc<dyn Broker>;

    /// Sends each message to its lane.
    async fn publish(&self, messages: &[Message]) -> Result<()>;

    /// Stores each message until its wake-up time and never delivers it earlier, however long ago that time
    /// was decided. It is then delivered before all others.
    async fn park(&self, parked: &[Parked]) -> Result<()>;

    /// Stores each message of a newer format unchanged until `wake`, for other workers.
    async fn pass_on(&self, newer: &[Newer], wake: Wake) -> Result<()>;

    /// Decides when a message that waits until `until` is delivered: at that time, or earlier, to be parked
    /// again.
    fn wake(&self, until: UnixMs) -> Wake;

    /// Stores dead letters where people and other programs can find them.
    async fn dead_letter(&self, dead_letters: &[DeadLetter]) -> Result<()>;

    /// Sends a probe with these times through every queue that workers consume. Returns the probes that need
    /// not come back: their queue is empty and has no consumer.
    async fn probe(&self, times: ProbeTimes) -> Result<Vec<Probe>>;

    /// The longest time until every message parked now has come back; zero if there are none.
    async fn longest_parked(&self) -> Result<Duration>;

    /// Publishes an event to its subscribers. A repeated event has the same id.
    async fn announce(&self, event: &Event) -> Result<()>;

    /// Starts to consume, with at most `prefetch` unacknowledged messages of each URL lane and `tasks` of the
    /// task lane. With `tasks` 0, that lane is left to other workers.
    async fn consume(&self, prefetch: u16, tasks: u16) -> Result<Box<dyn Consumer>>;

    /// Deletes the messages with these receipts. A receipt from before a reconnect is ignored: its message is
    /// redelivered.
    async fn ack(&self, receipts: &[Receipt]) -> Result<()>;

    /// Returns the messages with these receipts to their queues, for any worker to take.
    async fn release(&self, receipts: &[Receipt]) -> Result<()>;

    /// Ends consuming. When it returns, the broker has handled every acknowledgement, and delivers what is left to
    /// other workers.
    async fn close(&self) -> Result<()>;
}

/// A stream of deliveries.
#[async_trait]
pub trait Consumer: Send {
    /// Waits for messages and returns between one and `max`, in the order of
    /// [`trawl_common::frontier::source_queue::SourceQueue`]: parked ones whose time has come, then the
    /// priority lane, expired ones, tasks, then bulk. Cancelling the call loses nothing.
    ///
    /// An error ends this consumer: its unacknowledged deliveries will be redelivered.
    async fn next(&mut self, max: usize) -> Result<Vec<Delivery>>;
}

/// A received message, until its receipt is acknowledged or released.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The content.
    pub content: Content,
    /// For acknowledgement or release.
    pub receipt: Receipt,
}

/// The kinds of content that a queue can deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A wake-up for a URL or a task.
    Message(Message),
    /// One of the fleet's own probes.
    Probe(Probe),
    /// Content that is neither a message nor a probe.
    Malformed(Malformed),
    /// One of the fleet's own messages, in a format that only newer workers can read.
    Newer(Newer),
    /// A message that claims to be the fleet's own but is not signed with its key: forged, or older than the
    /// key.
    Unproven(Unproven),
}

/// A message in a format that this version does not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newer {
    /// The format.
    pub format: u64,
    /// The whole message, serialised by the adapter that received it.
    pub message: Vec<u8>,
}

/// A message that claims to be the fleet's own and cannot prove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unproven {
    /// A probe. It is ignored.
    Probe,
    /// A wake-up for a URL of this crawl.
    Message {
        /// The message without that claim: an external request for its URL.
        request: Box<Message>,
        /// The crawl that it names. If that crawl exists, its record sends the URL again.
        crawl: CrawlRef,
    },
}

/// Identifies one delivery to the adapter that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Receipt {
    /// The channel or session that made the delivery.
    pub session: u64,
    /// The number of the delivery within that session.
    pub tag: u64,
}

/// A message to park, and when to deliver it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    /// The message.
    pub message: Message,
    /// When it is delivered again.
    pub wake: Wake,
}

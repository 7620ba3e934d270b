//! Claims: which URLs and tasks a worker holds.

use async_trait::async_trait;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::{ClaimReply, StartReply};
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{Claim, Result};
use trawl_common::web::url::CanonicalUrl;

/// Decides which worker holds a URL or a task. Called by workers, from the arrival of a message to the start of its
/// fetch (`claiming.rs`, `frontier.rs`, `upkeep.rs`).
#[async_trait]
pub trait Claims: Send + Sync {
    /// Claims the URLs of messages that this worker has received. It holds the claimed ones until it has neither
    /// extended nor settled them for a quarter of `lost_after`, with which the records were created.
    ///
    /// A URL that was never seen is admitted on the spot: a person or another program published it, or the store has
    /// forgotten it. A message of a crawl that the store does not know creates that crawl again, if it was sent by one
    /// of trawl's programs.
    async fn claim(&self, worker: &WorkerId, messages: &[Message]) -> Result<Vec<ClaimReply>>;

    /// Extends this worker's leases on URLs that it claimed. A URL that another worker has taken over stays with that
    /// worker; one that the store forgot is admitted again, held by this worker. Returns, in order, which it still
    /// holds.
    async fn extend(&self, worker: &WorkerId, messages: &[Message]) -> Result<Vec<bool>>;

    /// Counts a start of each URL, just before it is fetched; repeated calls while the worker holds it count once. A
    /// URL of a paused crawl is released.
    async fn start(&self, worker: &WorkerId, claims: &[Claim]) -> Result<Vec<StartReply>>;

    /// Counts the start of a task that this worker holds, like [`Claims::start`], unless a more urgent task of the
    /// same spider is waiting ([`Outbox::list_urgent`](super::Outbox::list_urgent)): then nothing is started, and this
    /// worker holds that task as well. A later call may start this one.
    async fn start_task(&self, worker: &WorkerId, task: &Message) -> Result<TaskStart>;

    /// Whether the spider of `crawl` has seen a URL: it is pending, or has ended.
    async fn has_seen(&self, crawl: &CrawlRef, url: &CanonicalUrl) -> Result<bool>;
}

/// The result of asking to start a task.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskStart {
    /// The task, with the decision whether it may start.
    This(StartReply),
    /// A more urgent task comes first.
    Behind(Box<Urgent>),
}

/// A task that a worker holds because it is more urgent than the one it was about to start. Its own message has not
/// arrived yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Urgent {
    /// The message that has not arrived yet.
    pub message: Message,
    /// Failed attempts so far.
    pub attempts: u32,
    /// The number of starts without an end.
    pub starts: u32,
}

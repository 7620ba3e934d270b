//! The outbox: what was admitted, parked or found lost, and has no confirmed message yet.

use async_trait::async_trait;
use trawl_common::frontier::message::Message;
use trawl_common::ports::Result;

/// Notes what has been published. Called by everything that publishes messages: sessions, settlement, replays and the
/// sweep (`outbox.rs`).
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Records that these messages are stored in a queue. A record that waits for none of them stays as it is.
    async fn confirm(&self, messages: &[Message]) -> Result<()>;

    /// Lists waiting tasks that are more urgent than most: each has a priority above 0. They start before others of
    /// their spider, whichever message arrives first. Only the order depends on this list: if the store has no room, it
    /// is skipped.
    async fn list_urgent(&self, tasks: &[&Message]) -> Result<()>;
}

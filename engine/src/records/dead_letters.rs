//! Dead letters in the records.

use async_trait::async_trait;
use trawl_common::frontier::Key;
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::message::Message;
use trawl_common::names::CrawlRef;
use trawl_common::ports::Result;

/// Keeps invalid texts, noted by sessions and workers (`session.rs`, `settle.rs`), and admits failed URLs again for the
/// people who replay them (`coordinator.rs`).
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// Keeps invalid URLs and messages for people to look at ([`trawl_common::ports::Control::invalid`]), and counts
    /// them in their crawl's stats. An unknown crawl is created only for hand-published URLs.
    async fn note_invalid(&self, dead_letters: &[DeadLetter]) -> Result<()>;

    /// Removes URLs from the list of failed ones of `from` and admits them anew, with no failure counted, to the same
    /// crawl or to another of the same spider. Returns their messages, which are in the outbox: publish and confirm
    /// them. Fails with `Stale` if `into` is over or was never opened.
    async fn replay(&self, from: &CrawlRef, into: &CrawlRef, keys: &[Key]) -> Result<Vec<Message>>;
}

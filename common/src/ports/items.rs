//! Reading stored items back.

use async_trait::async_trait;

use super::Result;
use crate::names::CrawlId;
use crate::spider::item::Item;
use crate::time::UnixMs;

/// Reads items where a whole fleet stores them. Reading removes none.
#[async_trait]
pub trait Items: Send + Sync {
    /// Starts reading the items of a crawl, in the order in which they were stored, up to the current end. An item
    /// that was stored twice because of a crash comes twice, with the same id.
    ///
    /// Fails with `Stale` if the position no longer exists because everything was stored anew.
    async fn read(&self, crawl: &CrawlId, from: ItemsFrom) -> Result<Box<dyn ItemReader>>;
}

/// The start of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemsFrom {
    /// With items stored at this instant, or some time before.
    Time(UnixMs),
    /// At a position from [`ItemReader::place`].
    Place(u64),
}

/// The items of one crawl, from one position on.
#[async_trait]
pub trait ItemReader: Send {
    /// Returns the next item; `None` at the end. After a cancelled call only [`ItemReader::place`] may be used.
    async fn next(&mut self) -> Result<Option<StoredItem>>;

    /// Returns the position after everything read, of whatever crawl: reading from there misses nothing.
    fn place(&self) -> u64;
}

/// An item, as it was stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredItem {
    /// The item.
    pub item: Item,
    /// Its size as JSON, in bytes.
    pub bytes: usize,
}

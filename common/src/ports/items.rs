//! Items that were stored, to be read again.

use async_trait::async_trait;

use super::Result;
use crate::names::CrawlId;
use crate::spider::item::Item;
use crate::time::UnixMs;

/// Reads items where a whole fleet stores them. Reading takes none away.
#[async_trait]
pub trait Items: Send + Sync {
    /// Begins to read the items of a crawl, in the order in which they were stored, to where they end now. One that a crash had
    /// stored twice comes twice, with the same id.
    ///
    /// Fails with `Stale` if there is nothing like that place any more, for all was stored anew.
    async fn read(&self, crawl: &CrawlId, from: ItemsFrom) -> Result<Box<dyn ItemReader>>;
}

/// Where reading items begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemsFrom {
    /// With what was stored at this instant, or some time before.
    Time(UnixMs),
    /// At a position from [`ItemReader::place`].
    Place(u64),
}

/// The items of one crawl, from one place on.
#[async_trait]
pub trait ItemReader: Send {
    /// The next item; `None` at the end. After a call that was cancelled only [`ItemReader::place`] is of use.
    async fn next(&mut self) -> Result<Option<StoredItem>>;

    /// The place after all that was read, of whatever crawl: who begins there misses nothing.
    fn place(&self) -> u64;
}

/// An item, as it was stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredItem {
    /// The item.
    pub item: Item,
    /// How many bytes it takes as JSON.
    pub bytes: usize,
}

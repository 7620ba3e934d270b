//! Sinks: where items go.

use async_trait::async_trait;

use super::Result;
use crate::item::Item;

/// Takes items. An item may come more than once; its id says that it is the same.
#[async_trait]
pub trait Sink: Send + Sync {
    /// Stores all items, durably against the death of this process: when it returns, their URLs may be
    /// finished. On an error any part may have been stored, and all of them will be put again.
    async fn put(&self, items: &[Item]) -> Result<()>;
}

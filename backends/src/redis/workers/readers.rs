//! The positions of readers of the stream of items: `readers:<name>`, the offset of the message that each reads
//! next.

use trawl_common::names::ReaderName;
use trawl_common::ports::Result;

use crate::redis::{Link, failed, keys};

/// The positions of readers.
pub struct Readers {
    redis: Link,
}

impl Readers {
    /// Creates the positions on this connection.
    pub fn new(redis: Link) -> Self {
        Self { redis }
    }

    /// Returns the offset of the message that a reader reads next; `None` if it has not read yet.
    pub async fn place(&self, reader: &ReaderName) -> Result<Option<u64>> {
        let mut redis = self.redis.clone();
        redis::cmd("GET").arg(keys::reader(reader)).query_async(&mut redis).await.map_err(failed)
    }

    /// Stores the position of a reader.
    pub async fn keep(&self, reader: &ReaderName, offset: u64) -> Result<()> {
        let mut redis = self.redis.clone();
        redis::cmd("SET").arg(keys::reader(reader)).arg(offset).query_async(&mut redis).await.map_err(failed)
    }
}

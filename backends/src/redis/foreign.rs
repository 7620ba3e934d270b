//! Keys of a crawl under which others have put something else: that crawl stands still and is named, all others go on.

use std::time::Duration;

use tracing::error;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{ErrorKind, Result};

use super::RedisRecords;
use super::keys::CrawlKeys;

/// For so long a message of such a crawl waits until it is heard again.
pub(super) const WAIT: Duration = Duration::from_secs(60);

impl RedisRecords {
    /// What a call about one crawl came to; `None` if one of its keys holds what trawl did not write. That is named in the log,
    /// once.
    pub(super) async fn unless_foreign<T>(&self, crawl: &CrawlRef, told: Result<T>) -> Result<Option<T>> {
        match told {
            Err(error) if error.kind == ErrorKind::Corrupt => {
                if self.named.entry(crawl.clone()).or_insert(()).is_fresh() {
                    let keys = self.foreign_keys(crawl).await?.join(", ");
                    error!(crawl = %crawl.id, keys, %error, "keys of a crawl hold something else: it stands still");
                }
                Ok(None)
            }
            told => told.map(Some),
        }
    }

    /// The keys of a crawl that are of another type than trawl makes them, with both types.
    pub(super) async fn foreign_keys(&self, crawl: &CrawlRef) -> Result<Vec<String>> {
        let mut foreign = Vec::new();
        for (key, kinds) in CrawlKeys::new(crawl).kinds() {
            let kind: String = self.query(redis::cmd("TYPE").arg(&key)).await?;
            if kind != "none" && !kinds.contains(&&*kind) {
                foreign.push(format!("{key} (a {kind}, not a {})", kinds[0]));
            }
        }
        Ok(foreign)
    }
}

//! Keys and fields of a crawl in which others have put something else: that crawl stands still and is named, all others go on.

use std::time::Duration;

use tracing::error;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{ErrorKind, Result};

use super::RedisRecords;
use super::corrupt::shown;
use super::keys::{self, CrawlKeys};

/// For so long a message of such a crawl waits until its URL is claimed again.
pub(super) const WAIT: Duration = Duration::from_secs(60);

impl RedisRecords {
    /// What a call about one crawl came to; `None` if one of its keys holds what trawl did not write. That is named in the log,
    /// once.
    pub(super) async fn unless_foreign<T>(&self, crawl: &CrawlRef, reply: Result<T>) -> Result<Option<T>> {
        match reply {
            Err(error) if error.kind == ErrorKind::Corrupt => {
                if self.named.entry(CrawlKeys::new(crawl).crawl).or_insert(()).is_fresh() {
                    let keys = self.foreign_keys(crawl).await?.join(", ");
                    error!(crawl = %crawl.id, keys, %error, "keys of a crawl hold something else: it stands still until they are set right");
                }
                Ok(None)
            }
            reply => reply.map(Some),
        }
    }

    /// Names an entry in the list of crawls that cannot be read, once: nobody looks after the crawl that it may have been.
    pub(super) fn name_entry(&self, id: &[u8], spider: &[u8]) {
        let (id, spider) = (shown(id), shown(spider));
        if self.named.entry(format!("{} {id}", keys::CRAWLS)).or_insert(()).is_fresh() {
            error!(
                key = keys::CRAWLS,
                id, spider, "an entry in the list of crawls cannot be read: set it right, or remove it"
            );
        }
    }

    /// The keys of a crawl that are of another type than trawl makes them, with both types.
    pub(super) async fn foreign_keys(&self, crawl: &CrawlRef) -> Result<Vec<String>> {
        let mut foreign = Vec::new();
        for (key, kinds) in CrawlKeys::new(crawl).kinds() {
            let kind: String = self.redis.query(redis::cmd("TYPE").arg(&key)).await?;
            if kind != "none" && !kinds.contains(&&*kind) {
                foreign.push(format!("{key} (a {kind}, not a {})", kinds[0]));
            }
        }
        Ok(foreign)
    }
}

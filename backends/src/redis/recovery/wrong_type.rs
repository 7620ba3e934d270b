//! Keys and fields of a crawl that others have overwritten: that crawl stops and is logged, all others go on.

use std::time::Duration;

use tracing::error;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{ErrorKind, Result};

use crate::redis::RedisRecords;
use crate::redis::keys::{self, CrawlKeys};
use crate::redis::recovery::corrupt::shown;

/// The wait of a message of such a crawl before its URL is claimed again.
pub(crate) const RETRY_DELAY: Duration = Duration::from_secs(60);

impl RedisRecords {
    /// Returns the result of a call about one crawl; `None` if one of its keys holds a value that trawl did not
    /// write, which is logged once.
    pub(crate) async fn unless_wrong_type<T>(&self, crawl: &CrawlRef, reply: Result<T>) -> Result<Option<T>> {
        match reply {
            Err(error) if error.kind == ErrorKind::Corrupt => {
                if self.named.entry(CrawlKeys::new(crawl).crawl).or_insert(()).is_fresh() {
                    let keys = self.keys_of_wrong_type(crawl).await?.join(", ");
                    error!(crawl = %crawl.id, keys, %error, "keys of a crawl hold something else: it stands still until they are set right");
                }
                Ok(None)
            }
            reply => reply.map(Some),
        }
    }

    /// Logs an entry in the list of crawls that cannot be read, once: the crawl that it may have been is not
    /// maintained.
    pub(crate) fn name_entry(&self, id: &[u8], spider: &[u8]) {
        let (id, spider) = (shown(id), shown(spider));
        if self.named.entry(format!("{} {id}", keys::CRAWLS)).or_insert(()).is_fresh() {
            error!(
                key = keys::CRAWLS,
                id, spider, "an entry in the list of crawls cannot be read: set it right, or remove it"
            );
        }
    }

    /// Returns the keys of a crawl that have another type than trawl gives them, with both types.
    pub(crate) async fn keys_of_wrong_type(&self, crawl: &CrawlRef) -> Result<Vec<String>> {
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

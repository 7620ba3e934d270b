//! What is stored and cannot be read: it is taken out of the way and named, and everything else goes on.

use tracing::error;
use trawl_common::frontier::Key;
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::names::CrawlRef;
use trawl_common::ports::Result;
use trawl_common::text::printable;

use super::RedisRecords;
use super::keys::CrawlKeys;
use crate::notes;

/// How many records are reported at a time.
const NAMED: usize = 100;

impl RedisRecords {
    /// Takes records out of the way of which no message can be made.
    pub(super) async fn quarantine(&self, crawl: &CrawlRef, urls: &[Vec<u8>]) -> Result<()> {
        if urls.is_empty() {
            return Ok(());
        }
        let mut call = self.scripts.quarantine.key(CrawlKeys::new(crawl).pending);
        for url in urls {
            call.arg(url);
        }
        self.redis.run(&call).await
    }

    /// The dead letters of a crawl's records that could not be read, until [`RedisRecords::is_reported`]. What is no URL has none.
    pub(super) async fn unreported(&self, crawl: &CrawlRef) -> Result<Vec<DeadLetter>> {
        let keys = CrawlKeys::new(crawl);
        let unreported: Vec<Vec<u8>> =
            self.redis.query(redis::cmd("SRANDMEMBER").arg(&keys.unreported).arg(NAMED)).await?;
        let mut dead_letters = Vec::with_capacity(unreported.len());
        for url in unreported {
            match str::from_utf8(&url).ok().filter(|url| Key::recorded(url).is_ok()) {
                Some(text) => {
                    let note: Option<Vec<u8>> =
                        self.redis.query(redis::cmd("HGET").arg(&keys.failed).arg(text)).await?;
                    let (url, crawl) = (text.to_owned(), crawl.clone());
                    let cause = notes::stored(&note.unwrap_or_default()).cause;
                    dead_letters.push(DeadLetter { url, crawl, cause });
                }
                None => self.is_reported(crawl, [&url].into_iter()).await?,
            }
        }
        Ok(dead_letters)
    }

    /// Names in the log records of a crawl that could not be read, and whose dead letters are published.
    pub(super) async fn is_reported(
        &self,
        crawl: &CrawlRef,
        urls: impl Iterator<Item = impl AsRef<[u8]>>,
    ) -> Result<()> {
        let keys = CrawlKeys::new(crawl);
        for url in urls {
            let url = url.as_ref();
            let () = self.redis.query(redis::cmd("SREM").arg(&keys.unreported).arg(url)).await?;
            let (crawl, url, kept) = (&crawl.id, shown(url), &keys.corrupt);
            error!(%crawl, url, kept, "a record cannot be read: its URL counts as failed, its bytes are kept");
        }
        Ok(())
    }
}

/// Bytes as people may see them.
pub(super) fn shown(bytes: &[u8]) -> String {
    printable(&String::from_utf8_lossy(bytes), 1024)
}

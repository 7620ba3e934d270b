//! Stored records that cannot be read: each is removed and named in the log, and everything else goes on.

use tracing::error;
use trawl_common::frontier::Key;
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::names::CrawlRef;
use trawl_common::ports::Result;
use trawl_common::text::printable;

use crate::notes;
use crate::redis::RedisRecords;
use crate::redis::keys::CrawlKeys;

/// Maximum number of records reported at a time.
const MAX_REPORTED: usize = 100;

impl RedisRecords {
    /// Removes records of which no message can be made.
    pub(crate) async fn quarantine(&self, crawl: &CrawlRef, urls: &[Vec<u8>]) -> Result<()> {
        if urls.is_empty() {
            return Ok(());
        }
        let mut call = self.scripts.quarantine.on(&CrawlKeys::new(crawl));
        for url in urls {
            call.arg(url);
        }
        self.redis.run(&call).await
    }

    /// Returns the dead letters of a crawl's unreadable records, until [`RedisRecords::mark_reported`] is called.
    /// Texts that are no URLs have none.
    pub(crate) async fn unreported(&self, crawl: &CrawlRef) -> Result<Vec<DeadLetter>> {
        let keys = CrawlKeys::new(crawl);
        let unreported: Vec<Vec<u8>> =
            self.redis.query(redis::cmd("SRANDMEMBER").arg(&keys.unreported).arg(MAX_REPORTED)).await?;
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
                None => self.mark_reported(crawl, [&url].into_iter()).await?,
            }
        }
        Ok(dead_letters)
    }

    /// Logs records of a crawl that could not be read, once their dead letters are published.
    pub(crate) async fn mark_reported(
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

/// Returns bytes in a form for people.
pub(crate) fn shown(bytes: &[u8]) -> String {
    printable(&String::from_utf8_lossy(bytes), 1024)
}

//! What is stored and cannot be read: it is taken out of the way and named, and everything else goes on.

use tracing::error;
use trawl_common::lane::Lane;
use trawl_common::letter::{Cause, Note};
use trawl_common::names::CrawlRef;
use trawl_common::outcome::Reason;
use trawl_common::ports::Result;
use trawl_common::text::printable;
use trawl_common::time::UnixMs;

use super::RedisFrontier;
use super::keys::CrawlKeys;

/// How many records are named in the log at a time.
const NAMED: usize = 100;

impl RedisFrontier {
    /// Takes records out of the way of which no message can be made.
    pub(super) async fn quarantine(&self, crawl: &CrawlRef, urls: &[Vec<u8>]) -> Result<()> {
        if urls.is_empty() {
            return Ok(());
        }
        let mut call = self.scripts.quarantine.key(CrawlKeys::new(crawl).pending);
        for url in urls {
            call.arg(url);
        }
        self.run(&call).await
    }

    /// Names in the log, once, the records of a crawl that could not be read.
    pub(super) async fn name_corrupt(&self, crawl: &CrawlRef) -> Result<()> {
        let keys = CrawlKeys::new(crawl);
        let urls: Vec<Vec<u8>> = self.query(redis::cmd("SPOP").arg(&keys.untold).arg(NAMED)).await?;
        for url in urls {
            let (crawl, url, kept) = (&crawl.id, shown(&url), &keys.corrupt);
            error!(%crawl, url, kept, "a record cannot be read: its URL counts as failed, its bytes are kept");
        }
        Ok(())
    }
}

/// Bytes as people may see them.
pub(super) fn shown(bytes: &[u8]) -> String {
    printable(&String::from_utf8_lossy(bytes), 1024)
}

/// A note as it is stored, or of what is stored in its place.
pub(super) fn note(stored: &[u8]) -> Note {
    serde_json::from_slice(stored).unwrap_or_else(|error| Note {
        cause: Cause {
            reason: Reason::Corrupt,
            class: None,
            status: None,
            error: printable(&format!("its note cannot be read ({error}): {}", shown(stored)), 1024),
            attempts: 0,
            worker: None,
            failed_at: UnixMs::default(),
        },
        lane: Lane::default(),
        depth: 0,
        referrer: None,
    })
}

//! Converting a plain dedup to a packed one, while crawls go on.

use std::collections::BTreeSet;

use redis::{AsyncCommands, Script};
use trawl_common::names::SpiderName;
use trawl_common::ports::{Error, ErrorKind, Result};

use crate::redis::keys::{self, SeenKeys};
use crate::redis::script_calls::BATCH;
use crate::redis::seen::entry;
use crate::redis::{Link, failed, scripts};

/// Moves a spider's seen URLs from its plain set into the packed one, some hundred at a time. It may stop at any
/// point: until the plain set is gone, scripts look into both, and a new conversion continues with the rest.
pub struct Packing {
    redis: Link,
    script: Script,
    keys: SeenKeys,
    cursor: u64,
}

impl Packing {
    /// Creates the conversion for this spider. Nothing is moved yet.
    pub fn new(redis: Link, spider: &SpiderName) -> Self {
        Self { redis, script: scripts::pack(), keys: SeenKeys::for_spider(spider), cursor: 0 }
    }

    /// Moves some hundred URLs. Returns the number of URLs left.
    pub async fn step(&mut self) -> Result<u64> {
        let mut scan = redis::cmd("SSCAN");
        scan.arg(&self.keys.plain).arg(self.cursor).arg("COUNT").arg(BATCH);
        let (next, urls): (u64, Vec<String>) = scan.query_async(&mut self.redis).await.map_err(failed)?;
        self.cursor = next;
        for batch in urls.chunks(BATCH) {
            let mut call = self.script.key(&self.keys.plain);
            call.key(&self.keys.packed);
            for url in batch {
                entry(&mut call, url);
            }
            let () = call.invoke_async(&mut self.redis).await.map_err(failed)?;
        }
        self.left().await
    }

    /// Returns the number of URLs in the plain set.
    pub async fn left(&self) -> Result<u64> {
        self.redis.clone().scard(&self.keys.plain).await.map_err(failed)
    }
}

/// Returns the spiders that have, or had, a crawl.
pub async fn spiders(link: &Link) -> Result<BTreeSet<SpiderName>> {
    let spiders: Vec<String> = link.clone().hvals(keys::CRAWLS).await.map_err(failed)?;
    let spiders = spiders.iter().map(|spider| spider.parse());
    spiders
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| Error::new(ErrorKind::Corrupt, format!("redis: {error}")))
}

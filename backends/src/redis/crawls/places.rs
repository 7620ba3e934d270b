//! The places of a crawl's URLs, for people.

use std::collections::BTreeMap;

use trawl_common::names::CrawlRef;
use trawl_common::ports::{Places, Result};
use trawl_common::time::UnixMs;

use crate::redis::RedisRecords;
use crate::redis::keys::CrawlKeys;
use crate::redis::script_calls::corrupt;

/// Maximum number of records examined.
const MAX_EXAMINED: u32 = 1000;

impl RedisRecords {
    pub(crate) async fn read_places(&self, crawl: &CrawlRef) -> Result<Places> {
        let mut call = self.scripts.places.on(&CrawlKeys::new(crawl));
        let reply = self.redis.run(call.arg(MAX_EXAMINED)).await;
        let reply: Vec<String> = self.unless_wrong_type(crawl, reply).await?.unwrap_or_default();
        if reply.is_empty() { Ok(Places::default()) } else { read(&reply).ok_or_else(|| corrupt("places")) }
    }
}

/// Parses a reply; `None` for one that the script never gives.
fn read(reply: &[String]) -> Option<Places> {
    let [is_all, queued, parked, due, retried, held @ ..] = reply else { return None };
    let due: u64 = due.parse().ok()?;
    let holder = |pair: &[String]| Some((pair[0].parse().ok()?, pair[1].parse().ok()?));
    Some(Places {
        queued: queued.parse().ok()?,
        parked: parked.parse().ok()?,
        retried: retried.parse().ok()?,
        next: (due > 0).then_some(UnixMs(due)),
        held: held.chunks_exact(2).map(holder).collect::<Option<BTreeMap<_, _>>>()?,
        is_all: is_all == "1",
    })
}

//! The seen URLs, as arguments of scripts (`seen/seen.lua`).

pub(crate) mod packing;

use redis::ScriptInvocation;
use trawl_common::ports::Result;
use trawl_common::web::url::Fingerprint;

use crate::redis::RedisRecords;
use crate::redis::keys::CrawlKeys;
use crate::redis::script_calls::BATCH;

/// Adds the keys of the URLs that a crawl's spider, and the crawl itself, have seen.
pub(crate) fn seen_keys(call: &mut ScriptInvocation<'_>, keys: &CrawlKeys) {
    for set in [&keys.seen, &keys.own] {
        call.key(&set.plain).key(&set.packed);
    }
}

/// Adds a URL as an argument of a script that uses the seen URLs.
pub(crate) fn entry(call: &mut ScriptInvocation<'_>, url: &str) {
    call.arg(url).arg(Fingerprint::from_text(url).short());
}

impl RedisRecords {
    /// Lets later crawls find again the URLs that a finished crawl did not fetch.
    pub(crate) async fn forget(&self, keys: &CrawlKeys, urls: &[String]) -> Result<()> {
        for batch in urls.chunks(BATCH) {
            let mut call = self.scripts.forget.on(keys);
            for url in batch {
                entry(&mut call, url);
            }
            let () = self.redis.run(&call).await?;
        }
        Ok(())
    }
}

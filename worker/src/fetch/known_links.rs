//! Links that need not be admitted again.

use moka::sync::Cache;
use trawl_common::frontier::fingerprint;
use trawl_common::names::CrawlRef;
use trawl_common::web::url::Fingerprint;

/// The number of links to remember as known.
const MAX_REMEMBERED: u64 = 200_000;

/// The links that the frontier is known to have seen: pages of one site link to the same others again and
/// again.
pub(crate) struct KnownLinks(Cache<Fingerprint, ()>);

impl Default for KnownLinks {
    fn default() -> Self {
        Self(Cache::new(MAX_REMEMBERED))
    }
}

impl KnownLinks {
    pub(crate) fn has(&self, crawl: &CrawlRef, key: &str) -> bool {
        self.0.contains_key(&fingerprint(crawl, key))
    }

    pub(crate) fn add(&self, crawl: &CrawlRef, key: &str) {
        self.0.insert(fingerprint(crawl, key), ());
    }
}

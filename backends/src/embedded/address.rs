//! Where the record of a URL or a task is found.

use trawl_common::frontier::Key;
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::web::url::Fingerprint;

/// Where the record of one URL or task is found. Built by the caller, so that the writer need not hash.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) url: Fingerprint,
    pub(super) crawl: CrawlRef,
}

impl Address {
    /// The address of what has this key in `crawl`. Spiders don't mix: each has seen a URL, or not, on its own.
    pub(super) fn new(crawl: &CrawlRef, key: &str) -> Self {
        Self { url: Fingerprint::of(&format!("{}\n{key}", crawl.spider)), crawl: crawl.clone() }
    }

    /// The addresses of `keys` in no crawl in particular.
    pub(super) fn of_spider(spider: &SpiderName, keys: &[Key]) -> Vec<Self> {
        let crawl = CrawlRef::adhoc_of(spider.clone());
        keys.iter().map(|key| Self::new(&crawl, key.as_str())).collect()
    }
}

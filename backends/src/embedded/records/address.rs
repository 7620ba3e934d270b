//! The address of the record of a URL or a task.

use trawl_common::frontier::Key;
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::web::url::Fingerprint;

/// The address of the record of one URL or task. Built by the caller, so that the writer need not hash.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) url: Fingerprint,
    pub(crate) crawl: CrawlRef,
}

impl Address {
    /// Returns the address of this key in `crawl`. Each spider has its own seen URLs, so its name is part of the
    /// hash.
    pub(crate) fn new(crawl: &CrawlRef, key: &str) -> Self {
        Self { url: Fingerprint::from_text(&format!("{}\n{key}", crawl.spider)), crawl: crawl.clone() }
    }

    /// Returns the addresses of `keys` for a spider, in its ad-hoc crawl, as no particular crawl is meant.
    pub(crate) fn of_spider(spider: &SpiderName, keys: &[Key]) -> Vec<Self> {
        let crawl = CrawlRef::adhoc_of(spider.clone());
        keys.iter().map(|key| Self::new(&crawl, key.as_str())).collect()
    }
}

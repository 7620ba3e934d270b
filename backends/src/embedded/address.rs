//! Where the record of a URL or a task is found.

use trawl_common::names::CrawlRef;
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
}

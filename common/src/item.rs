//! Items: what a spider extracts from a page.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::names::{CrawlId, CrawlRef, SpiderName};
use crate::time::UnixMs;
use crate::url::{CanonicalUrl, Fingerprint};

/// The data of one page. Two items with one id are the same item, delivered again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// [`item_id`] of the crawl and the URL.
    pub id: String,
    /// The URL as it was admitted.
    pub url: String,
    /// The crawl.
    pub crawl: CrawlId,
    /// The spider.
    pub spider: SpiderName,
    /// When the response arrived, RFC 3339.
    pub fetched_at: String,
    /// The HTTP status.
    pub status: u16,
    /// Links away from the start.
    pub depth: u16,
    /// What was extracted, by field.
    pub fields: Map<String, Value>,
}

impl Item {
    /// The item of `url` in `crawl`.
    pub fn new(
        url: &CanonicalUrl,
        crawl: &CrawlRef,
        status: u16,
        depth: u16,
        fields: Map<String, Value>,
    ) -> Self {
        Self {
            id: item_id(crawl, url),
            url: url.to_string(),
            crawl: crawl.id.clone(),
            spider: crawl.spider.clone(),
            fetched_at: UnixMs::now().to_string(),
            status,
            depth,
            fields,
        }
    }
}

/// The id of the item that `url` yields in `crawl`: the same however often the page is fetched.
pub fn item_id(crawl: &CrawlRef, url: &CanonicalUrl) -> String {
    Fingerprint::of(&format!("{}\n{url}", crawl.id)).to_string()
}

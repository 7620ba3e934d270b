//! Items: the data that a spider extracts from a page.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::names::{CrawlId, SpiderName};
use crate::web::url::Fingerprint;

/// The data of one page. Two items of one crawl with the same id are one item, delivered again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// The id, computed by [`item_id`].
    pub id: String,
    /// The URL as it was admitted; for a page that names another URL as canonical, and stands for it, that URL.
    pub url: String,
    /// The crawl.
    pub crawl: CrawlId,
    /// The spider.
    pub spider: SpiderName,
    /// The time when the response arrived, RFC 3339.
    pub fetched_at: String,
    /// The HTTP status.
    pub status: u16,
    /// Number of links from the start.
    pub depth: u16,
    /// The kind of the item, if the spider has several kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The change of the page, if the crawl compares pages with their earlier state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// The page's own URL, if it is another: a redirect led there, or the page names `url` as canonical.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_url: Option<String>,
    /// The page, request or task that led to its page, if the spider has kinds of pages; `None` at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub referrer: Option<String>,
    /// The kinds of pages from the start to its page, if the spider has kinds of pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<String>>,
    /// The extracted values, by field.
    pub fields: Map<String, Value>,
}

/// The change of a page's content since the last crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Change {
    /// The page was not crawled before.
    New,
    /// The content differs.
    Changed,
    /// The content is the same.
    Unchanged,
    /// The page no longer exists.
    Gone,
}

impl Change {
    /// Returns the name in items and stores.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Returns the id of an item of a page: the same for every fetch of the page, and in every crawl of the spider.
/// `rule` is the name of the item's kind, if it has one, and `number` counts the items of that kind on the page,
/// from 0.
pub fn item_id(spider: &SpiderName, key: &str, rule: Option<&str>, number: usize) -> String {
    let which = match (rule, number) {
        (None, 0) => String::new(),
        (rule, number) => format!("\n{}\n{number}", rule.unwrap_or_default()),
    };
    Fingerprint::from_text(&format!("{spider}\n{key}{which}")).to_string()
}

/// Returns the id of an item of a task: the same at each attempt, in whatever order its program yields its items.
/// `fields` are the item's as JSON, and `equals` counts the items before it with the same fields.
pub fn task_item_id(spider: &SpiderName, key: &str, fields: &str, equals: usize) -> String {
    Fingerprint::from_text(&format!("{spider}\n{key}\n{equals}\n{fields}")).to_string()
}

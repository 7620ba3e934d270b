//! Items: what a spider extracts from a page.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::names::{CrawlId, SpiderName};
use crate::web::url::Fingerprint;

/// The data of one page. Two items of one crawl with one id are the same item, delivered again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// [`item_id`].
    pub id: String,
    /// The URL as it was admitted; of a page that stands for another, which it names as canonical, that other's.
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
    /// What sets it apart from the spider's other items, if the spider has several kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// Whether it is news, where the crawl compares pages with what they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// Where the page was, if that is another URL: where redirects led, or a form of the page that names `url` as canonical.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_url: Option<String>,
    /// What was extracted, by field.
    pub fields: Map<String, Value>,
}

/// What became of a page's content since it was last crawled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Change {
    /// It was not crawled before.
    New,
    /// It is another than it was.
    Changed,
    /// It is as it was.
    Unchanged,
    /// It is there no more.
    Gone,
}

impl Change {
    /// The name in items and stores.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The id of an item of a page: the same however often the page is fetched, and in every crawl of the spider. `rule` is the name of
/// its kind, if it has one, and `number` counts the items of that kind on the page, from 0.
pub fn item_id(spider: &SpiderName, key: &str, rule: Option<&str>, number: usize) -> String {
    let which = match (rule, number) {
        (None, 0) => String::new(),
        (rule, number) => format!("\n{}\n{number}", rule.unwrap_or_default()),
    };
    Fingerprint::of(&format!("{spider}\n{key}{which}")).to_string()
}

/// The id of an item of a task: the same at each attempt, in whatever order its program yields its items. `fields` are the item's as JSON, and
/// `equals` counts the items before it that say the same.
pub fn task_item_id(spider: &SpiderName, key: &str, fields: &str, equals: usize) -> String {
    Fingerprint::of(&format!("{spider}\n{key}\n{equals}\n{fields}")).to_string()
}

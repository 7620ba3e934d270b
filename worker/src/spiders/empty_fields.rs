//! Fields without a value on any page: their selector is wrong, or the site has changed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tracing::warn;
use trawl_common::spider::item::Item;
use trawl_common::spider::{FieldSource, Spider};

/// The number of pages after which they are reported; if a worker reads fewer, it reports them when it stops.
const MIN_PAGES: u64 = 100;

/// The fields of a spider, and whether they have had a value.
pub(crate) struct EmptyFields {
    fields: Vec<Seen>,
    pages: AtomicU64,
    is_reported: AtomicBool,
}

struct Seen {
    /// The name of the field's kind of item, if it has one.
    item: Option<String>,
    name: String,
    had_value: AtomicBool,
}

impl EmptyFields {
    /// Starts with no pages read. Fields with metadata that pages may or may not have are left out, since
    /// they may well be missing everywhere.
    pub(crate) fn new(spider: &Spider) -> Self {
        let all = spider.items.iter().flat_map(|rule| rule.fields.iter().map(|field| (&rule.name, field)));
        let own = all.filter(|(_, (_, field))| !matches!(field.from, FieldSource::Page(_)));
        let seen = |(item, (name, _)): (&Option<String>, &(String, _))| Seen {
            item: item.clone(),
            name: name.clone(),
            had_value: AtomicBool::new(false),
        };
        Self {
            fields: own.map(seen).collect(),
            pages: AtomicU64::new(0),
            is_reported: AtomicBool::new(false),
        }
    }

    /// Records which fields a page has.
    pub(crate) fn look(&self, spider: &Spider, items: &[Item]) {
        for field in self.fields.iter().filter(|field| !field.had_value.load(Ordering::Relaxed)) {
            let of_kind = items.iter().filter(|item| item.item == field.item);
            let mut values = of_kind.filter_map(|item| item.fields.get(&field.name));
            if values.any(|value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty())) {
                field.had_value.store(true, Ordering::Relaxed);
            }
        }
        if self.pages.fetch_add(1, Ordering::Relaxed) + 1 >= MIN_PAGES {
            self.tell(spider);
        }
    }

    /// Logs the fields that never had a value, once.
    pub(crate) fn tell(&self, spider: &Spider) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages == 0 || self.is_reported.swap(true, Ordering::Relaxed) {
            return;
        }
        for name in self.names() {
            warn!(spider = %spider.name, field = name, pages, "the field has had no value on any page");
        }
    }

    fn names(&self) -> Vec<String> {
        let empty_fields = self.fields.iter().filter(|field| !field.had_value.load(Ordering::Relaxed));
        let name = |field: &Seen| match &field.item {
            Some(item) => format!("{item}.{}", field.name),
            None => field.name.clone(),
        };
        empty_fields.map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trawl_common::names::{CrawlRef, SpiderName};
    use trawl_common::settings::Items;

    use super::*;

    fn item(fields: &Value) -> Item {
        let CrawlRef { id, spider } = CrawlRef::adhoc();
        Item {
            id: String::new(),
            url: String::new(),
            crawl: id,
            spider,
            fetched_at: String::new(),
            status: 200,
            depth: 0,
            item: None,
            change: None,
            final_url: None,
            referrer: None,
            path: None,
            fields: fields.as_object().cloned().unwrap_or_default(),
        }
    }

    #[test]
    fn a_field_is_barren_until_a_page_has_it() {
        let fields = [("price", ".price"), ("tags", ".tag"), ("name", "h1")];
        let fields = fields.map(|(name, css)| (name.to_owned(), css.to_owned())).into();
        let items = Items { fields, ..Items::default() };
        let spider = Spider::without_file(SpiderName::default(), &items);
        let empty_fields = EmptyFields::new(&spider);
        assert_eq!(empty_fields.names(), ["name", "price", "tags"], "not the title, which no page need have");
        empty_fields.look(&spider, &[item(&json!({"name": "x", "price": null, "tags": []}))]);
        assert_eq!(empty_fields.names(), ["price", "tags"]);
        empty_fields.look(&spider, &[item(&json!({"name": null})), item(&json!({"tags": ["a"]}))]);
        assert_eq!(empty_fields.names(), ["price"]);
    }
}

//! Items that equal one of another page, which are counted where the spider's `[quality]` limits their share.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use parking_lot::Mutex;
use trawl_common::spider::Spider;
use trawl_common::spider::item::Item;

/// Number of items that are remembered.
const MAX_ITEMS: usize = 10_000;

/// The last items of a spider that differ.
pub(crate) struct RecentItems(Option<Mutex<Recent>>);

#[derive(Default)]
struct Recent {
    /// The hash of the id of the first item, by the hash of the content.
    first: HashMap<u64, u64>,
    /// The hashes of the contents, oldest first.
    order: VecDeque<u64>,
}

impl RecentItems {
    /// Starts with no items.
    pub(crate) fn new(spider: &Spider) -> Self {
        let is_limited = spider.quality.as_ref().is_some_and(|quality| quality.duplicates.is_some());
        Self(is_limited.then(Mutex::default))
    }

    /// Remembers items. Returns the number of those that equal an earlier one of their crawl with another id, so that a
    /// page that is read again has none.
    pub(crate) fn count_duplicates(&self, items: &[Item]) -> u64 {
        let Some(recent) = &self.0 else { return 0 };
        let hashes: Vec<_> = items.iter().map(|item| (content(item), hash(&item.id))).collect();
        let mut recent = recent.lock();
        hashes.into_iter().filter(|(content, id)| recent.is_duplicate(*content, *id)).count() as u64
    }
}

impl Recent {
    fn is_duplicate(&mut self, content: u64, id: u64) -> bool {
        if let Some(first) = self.first.get(&content) {
            return *first != id;
        }
        self.first.insert(content, id);
        self.order.push_back(content);
        if self.order.len() > MAX_ITEMS
            && let Some(oldest) = self.order.pop_front()
        {
            self.first.remove(&oldest);
        }
        false
    }
}

fn content(item: &Item) -> u64 {
    hash(&(&item.crawl, &item.item, serde_json::to_string(&item.fields).unwrap_or_default()))
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trawl_common::settings;
    use trawl_common::spider::Quality;

    use super::*;

    fn item(crawl: &str, id: usize, title: &str) -> Item {
        let item = json!({
            "id": id.to_string(), "url": "https://a.example/", "crawl": crawl, "spider": "shop", "fetched_at": "",
            "status": 200, "depth": 0, "fields": { "title": title },
        });
        serde_json::from_value(item).unwrap()
    }

    fn recent(duplicates: Option<f64>) -> RecentItems {
        let quality = Quality { window: 100, required: None, items_per_page: None, failed: None, duplicates };
        let name = "shop".parse().unwrap();
        RecentItems::new(&Spider {
            quality: Some(quality),
            ..Spider::without_file(name, &settings::Items::default())
        })
    }

    #[test]
    fn an_item_that_another_page_of_the_crawl_gave_is_a_duplicate_and_a_page_read_again_has_none() {
        let recent = recent(Some(0.5));
        assert_eq!(recent.count_duplicates(&[item("c1", 1, "x"), item("c1", 2, "x"), item("c1", 3, "y")]), 1);
        assert_eq!(recent.count_duplicates(&[item("c1", 1, "x")]), 0);
        assert_eq!(recent.count_duplicates(&[item("c2", 1, "x")]), 0);
    }

    #[test]
    fn items_are_remembered_up_to_a_limit_and_only_where_their_share_is_limited() {
        let limited = recent(Some(0.5));
        for number in 0..2 * MAX_ITEMS {
            limited.count_duplicates(&[item("c1", number, &number.to_string())]);
        }
        let recent_items = limited.0.as_ref().unwrap().lock();
        assert_eq!((recent_items.first.len(), recent_items.order.len()), (MAX_ITEMS, MAX_ITEMS));
        let free = recent(None);
        assert_eq!(free.count_duplicates(&[item("c1", 1, "x"), item("c1", 2, "x")]), 0);
    }
}

//! The promises of every sink of items.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::try_join_all;
use serde_json::{Map, Value, json};
use trawl_common::mistake::Sited;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Page, Result, Sink};
use trawl_common::settings;
use trawl_common::spider::item::{Change, Item, item_id};
use trawl_common::spider::{Field, FieldSource, ItemRule, Kind, Spider};
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;

use super::{page, unique};

/// A place for the items of [`spider`], empty at first.
#[async_trait]
pub trait Shelf: Send + Sync {
    /// Opens a sink that puts items there. Only one is open at a time.
    async fn open(&self) -> Arc<dyn Sink>;

    /// Returns the items there, in the order in which they were put.
    async fn items(&self) -> Vec<Item>;

    /// Returns the value that is read back after `value` was stored: an equal one, unless the format represents some
    /// values alike.
    fn read_back(&self, value: Value) -> Value {
        value
    }
}

/// Makes a test of each promise of a sink; the fixture returns a guard and an `Arc<dyn Shelf>`.
#[macro_export]
macro_rules! sink_conformance {
    ($fixture:path) => {
        $crate::promises! { $fixture, sink:
            what_is_put_is_there_when_put_returns
            the_order_is_kept
            what_is_put_again_is_the_same_item
            a_new_sink_goes_on_where_the_last_one_ended
            more_may_be_put_after_a_close
            many_puts_at_once_lose_nothing
            every_kind_of_value_survives
            an_item_of_eight_megabytes_survives
            pages_without_items_are_fine
        }
    };
}

/// Returns the spider whose items are put. It has a field of each kind, lists, and a field with the name of one that
/// every item has.
pub fn spider() -> Spider {
    let field = |kind| Field { kind, ..Field::new(FieldSource::Css(Sited::nowhere("p"))) };
    let list = |kind| Field { list: true, ..field(kind) };
    let nested = FieldSource::Each(Sited::nowhere("li").into(), vec![("name".to_owned(), field(Kind::Text))]);
    let fields = [
        ("number", field(Kind::Number)),
        ("text", field(Kind::Text)),
        ("integer", field(Kind::Integer)),
        ("boolean", field(Kind::Boolean)),
        ("date", field(Kind::Date)),
        ("url", field(Kind::Url)),
        ("html", field(Kind::Html)),
        ("json", field(Kind::Json)),
        ("texts", list(Kind::Text)),
        ("numbers", list(Kind::Number)),
        ("nested", Field::new(nested)),
    ];
    let fields = fields.into_iter().map(|(name, field)| (name.to_owned(), field)).collect();
    let name = "suite".parse().expect("it is a name");
    let spider = Spider::without_file(name, &settings::Items::default());
    Spider { items: vec![ItemRule { name: None, each: None, fields, page: None }], ..spider }
}

/// Returns page `number` of a site, with one item of these fields; the others are null.
fn yielded(site: &str, number: usize, fields: Value) -> Page {
    let url = page(site, number);
    let crawl = CrawlRef { id: "suite-1".parse().expect("it is a name"), spider: spider().name };
    let item = Item {
        depth: 3,
        item: (number % 2 == 1).then(|| "odd".to_owned()),
        change: (number % 2 == 1).then_some(Change::Changed),
        ..item(&url, &crawl, number, fields)
    };
    Page { key: url.into(), crawl, referrer: None, items: vec![item], exchange: None }
}

/// Returns an item of [`spider`] with these fields; the others are null. Items with greater numbers were fetched later.
pub fn item(url: &CanonicalUrl, crawl: &CrawlRef, number: usize, fields: Value) -> Item {
    let mut all: Map<String, Value> =
        spider().items[0].fields.iter().map(|(name, _)| (name.clone(), Value::Null)).collect();
    if let Value::Object(fields) = fields {
        all.extend(fields);
    }
    Item {
        id: item_id(&crawl.spider, url.as_str(), None, 0),
        url: url.to_string(),
        crawl: crawl.id.clone(),
        spider: crawl.spider.clone(),
        fetched_at: UnixMs(1_700_000_000_000 + number as u64).to_string(),
        status: 200,
        depth: 0,
        item: None,
        change: None,
        final_url: None,
        referrer: None,
        path: None,
        fields: all,
    }
}

fn yielded_range(numbers: std::ops::Range<usize>, site: &str) -> Vec<Page> {
    numbers.map(|number| yielded(site, number, json!({ "text": format!("page {number}") }))).collect()
}

/// Returns the items of pages as they are read back.
fn expected(shelf: &dyn Shelf, pages: &[Page]) -> Vec<Item> {
    let read_back = |item: &Item| {
        let fields = item.fields.clone().into_iter().map(|(name, value)| (name, shelf.read_back(value)));
        Item { fields: fields.collect(), ..item.clone() }
    };
    pages.iter().flat_map(|page| &page.items).map(read_back).collect()
}

async fn assert_holds(shelf: &dyn Shelf, pages: &[Page]) {
    let (found, expected) = (shelf.items().await, expected(shelf, pages));
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
}

/// When `put` returns, the items are there, without any other call.
pub async fn what_is_put_is_there_when_put_returns(shelf: &Arc<dyn Shelf>) -> Result<()> {
    let (site, sink) = (unique("site"), shelf.open().await);
    let pages = yielded_range(0..6, &site);
    for count in [1, 3, 6] {
        sink.put(&pages[count / 2..count]).await?;
        assert_holds(&**shelf, &pages[..count]).await;
    }
    Ok(())
}

/// The order of items is kept, within a `put` and from one to the next.
pub async fn the_order_is_kept(shelf: &Arc<dyn Shelf>) -> Result<()> {
    let (site, sink) = (unique("site"), shelf.open().await);
    let pages = yielded_range(0..200, &site);
    for part in pages.chunks(64) {
        sink.put(part).await?;
    }
    assert_holds(&**shelf, &pages).await;
    Ok(())
}

/// An item that is put again has the same id: delivery is at least once, and readers tell items apart by the id.
pub async fn what_is_put_again_is_the_same_item(shelf: &Arc<dyn Shelf>) -> Result<()> {
    let (site, sink) = (unique("site"), shelf.open().await);
    let pages = yielded_range(0..3, &site);
    sink.put(&pages).await?;
    sink.put(&pages[1..]).await?;
    let by_id = |items: Vec<Item>| -> HashMap<String, Item> {
        items.into_iter().map(|item| (item.id.clone(), item)).collect()
    };
    assert_eq!(by_id(shelf.items().await), by_id(expected(&**shelf, &pages)));
    Ok(())
}

/// A new sink goes on where the last one ended, closed or not.
pub async fn a_new_sink_goes_on_where_the_last_one_ended(shelf: &Arc<dyn Shelf>) -> Result<()> {
    let site = unique("site");
    let pages = yielded_range(0..3, &site);
    for (number, page) in pages.iter().enumerate() {
        let sink = shelf.open().await;
        sink.put(std::slice::from_ref(page)).await?;
        if number == 1 {
            sink.close().await?;
        }
    }
    assert_holds(&**shelf, &pages).await;
    Ok(())
}

/// More items may be put after a `close`, and a `close` without new items changes nothing.
pub async fn more_may_be_put_after_a_close(shelf: &Arc<dyn Shelf>) -> Result<()> {
    let (site, sink) = (unique("site"), shelf.open().await);
    let pages = yielded_range(0..2, &site);
    sink.close().await?;
    for page in &pages {
        sink.put(std::slice::from_ref(page)).await?;
        sink.close().await?;
        sink.close().await?;
    }
    assert_holds(&**shelf, &pages).await;
    Ok(())
}

/// Concurrent puts lose nothing. Items may come in any order, each whole.
pub async fn many_puts_at_once_lose_nothing(shelf: &Arc<dyn Shelf>) -> Result<()> {
    let (site, sink) = (unique("site"), shelf.open().await);
    let pages = yielded_range(0..400, &site);
    try_join_all(pages.chunks(20).map(|part| sink.put(part))).await?;
    let mut found = shelf.items().await;
    found.sort_by(|a, b| a.fetched_at.cmp(&b.fetched_at));
    assert_eq!(found, expected(&**shelf, &pages));
    Ok(())
}

/// Every kind of value survives: texts of any language with any characters of a page, extreme numbers, lists, objects,
/// null.
pub async fn every_kind_of_value_survives(shelf: &Arc<dyn Shelf>) -> Result<()> {
    let values = [
        json!({}),
        json!({ "text": "", "integer": 0, "number": 0.5, "boolean": false, "texts": [], "numbers": [], "nested": [] }),
        json!({ "text": "Zürich, \u{1f980} 漢字 \u{202e}\u{200d}", "url": "https://example.com/?a=1&b=%20" }),
        json!({ "text": "a \"quoted\", comma;\r\nline\n\ttab \u{1b}[31m \u{7f} \\ ' \u{2028}", "html": "<p>\n</p>" }),
        json!({ "text": "=HYPERLINK(\"http://example.com\")", "html": "-1+2", "date": "2024-02-29T23:59:59+01:00" }),
        json!({ "text": "null", "html": "-12.5", "date": "2024-02-29" }),
        json!({ "integer": i64::MAX, "number": 1e300, "boolean": true }),
        json!({ "integer": i64::MIN, "number": -0.25 }),
        json!({ "texts": ["", "a,b", "\"", "é"], "numbers": [1.5, -2.5] }),
        json!({ "json": { "a": [1, "two", { "three": null }], "\"": "\n" } }),
        json!({ "nested": [{ "name": "a" }, { "name": null, "more": { "deep": [[[]]] } }] }),
    ];
    let (site, sink) = (unique("site"), shelf.open().await);
    let pages: Vec<Page> =
        values.into_iter().enumerate().map(|(number, fields)| yielded(&site, number, fields)).collect();
    sink.put(&pages).await?;
    assert_holds(&**shelf, &pages).await;
    sink.close().await?;
    assert_holds(&**shelf, &pages).await;
    Ok(())
}

/// An item of the maximum size survives between small ones.
pub async fn an_item_of_eight_megabytes_survives(shelf: &Arc<dyn Shelf>) -> Result<()> {
    let (site, sink) = (unique("site"), shelf.open().await);
    let texts = ["small".to_owned(), "largest ".repeat(1 << 20), "last".to_owned()];
    let texts = texts.iter().enumerate();
    let pages: Vec<Page> =
        texts.map(|(number, text)| yielded(&site, number, json!({ "text": text }))).collect();
    sink.put(&pages).await?;
    let (found, expected) = (shelf.items().await, expected(&**shelf, &pages));
    assert!(found == expected, "{} of {} items, or another text", found.len(), expected.len());
    Ok(())
}

/// Pages without items, and no pages at all, are no error.
pub async fn pages_without_items_are_fine(shelf: &Arc<dyn Shelf>) -> Result<()> {
    let (site, sink) = (unique("site"), shelf.open().await);
    let mut pages = yielded_range(0..3, &site);
    pages[0].items.clear();
    pages[2].items.clear();
    sink.put(&[]).await?;
    sink.put(&pages).await?;
    sink.put(&pages[2..]).await?;
    assert_holds(&**shelf, &pages).await;
    Ok(())
}

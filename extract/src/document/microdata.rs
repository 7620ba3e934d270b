//! Microdata (HTML standard, section 5) in the form of JSON-LD: an object with `@type`, `@id` and its properties. A
//! property with several values is a list.

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeSet, HashMap, HashSet};

use ego_tree::NodeId;
use scraper::ElementRef;
use serde_json::{Map, Value};
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::text::legible;

use crate::document::base::Base;
use crate::document::found::visible_lines;
use crate::document::json_ld::is_type;
use crate::limits::MAX_TEXT;

/// Maximum depth of items nested in items.
const MAX_DEPTH: usize = 32;
/// Maximum cost of all items of a page, in bytes of text. It is bounded because items may refer to each other, and
/// because nested elements contain the same text several times.
const MAX_COST: usize = 256 << 20;
/// Cost of visiting an element.
const ELEMENT_COST: usize = 16;
/// Cost of creating an object.
const OBJECT: usize = 1024;

/// The microdata of one page.
#[derive(Default)]
pub(crate) struct Microdata<'a> {
    /// The first element with each ID, collected on first use.
    ids: OnceCell<HashMap<&'a str, ElementRef<'a>>>,
    /// The cost so far.
    cost: Cell<usize>,
}

impl<'a> Microdata<'a> {
    /// Returns the items of type `name` in `scope`, without those nested in an item of that type. Fails if their cost
    /// exceeds the limit.
    pub(crate) fn items(
        &self,
        scope: ElementRef<'a>,
        name: &str,
        base: &Base<'_>,
    ) -> Result<Vec<Value>, Failure> {
        let mut found = Vec::new();
        Reader { page: self, base, open: Vec::new() }.find(scope, name, &mut found)?;
        Ok(found)
    }

    /// Returns the element with this ID in the document of `beside`.
    fn element(&self, id: &str, beside: ElementRef<'a>) -> Option<ElementRef<'a>> {
        let ids = self.ids.get_or_init(|| {
            let mut ids = HashMap::new();
            for element in beside.tree().root().descendants().filter_map(ElementRef::wrap) {
                if let Some(id) = element.attr("id") {
                    ids.entry(id).or_insert(element);
                }
            }
            ids
        });
        ids.get(id).copied()
    }
}

struct Reader<'r, 'a> {
    page: &'r Microdata<'a>,
    base: &'r Base<'r>,
    /// The items being read, each nested in the one before it.
    open: Vec<NodeId>,
}

impl<'a> Reader<'_, 'a> {
    /// Recursion is bounded by the depth of the tree, which is limited.
    fn find(&mut self, element: ElementRef<'a>, name: &str, found: &mut Vec<Value>) -> Result<(), Failure> {
        if is_item(element) && types(element).any(|kind| is_type(kind, name)) {
            found.push(self.item(element)?);
            return Ok(());
        }
        element.child_elements().try_for_each(|child| self.find(child, name, found))
    }

    fn item(&mut self, item: ElementRef<'a>) -> Result<Value, Failure> {
        self.spend(OBJECT)?;
        let mut object = Map::new();
        let mut kinds: Vec<Value> = types(item).map(Value::from).collect();
        match kinds.len() {
            0 => {}
            1 => drop(object.insert("@type".to_owned(), kinds.remove(0))),
            _ => drop(object.insert("@type".to_owned(), kinds.into())),
        }
        if let Some(id) = item.attr("itemid").and_then(|id| self.base.resolve(id)) {
            object.insert("@id".to_owned(), id.into());
        }
        self.open.push(item.id());
        for property in self.properties(item)? {
            // An item that contains itself through `itemref` is left out.
            if is_item(property) && (self.open.contains(&property.id()) || self.open.len() >= MAX_DEPTH) {
                continue;
            }
            let before = self.page.cost.get();
            let value = if is_item(property) { self.item(property)? } else { self.value(property)? };
            let cost = self.page.cost.get() - before + ELEMENT_COST;
            let names: BTreeSet<_> =
                property.attr("itemprop").unwrap_or_default().split_ascii_whitespace().collect();
            for name in names {
                self.spend(cost)?;
                add(&mut object, name, value.clone());
            }
        }
        self.open.pop();
        Ok(Value::Object(object))
    }

    /// Returns the elements that are properties of an item, in document order.
    fn properties(&mut self, item: ElementRef<'a>) -> Result<Vec<ElementRef<'a>>, Failure> {
        let mut seen = HashSet::from([item.id()]);
        let mut found = Vec::new();
        let mut roots: Vec<_> = item.child_elements().collect();
        for id in item.attr("itemref").unwrap_or_default().split_ascii_whitespace() {
            roots.extend(self.page.element(id, item));
        }
        for root in roots {
            self.walk(root, &mut seen, &mut found)?;
        }
        found.sort_by_key(|element| element.id());
        Ok(found)
    }

    fn walk(
        &mut self,
        element: ElementRef<'a>,
        seen: &mut HashSet<NodeId>,
        found: &mut Vec<ElementRef<'a>>,
    ) -> Result<(), Failure> {
        self.spend(ELEMENT_COST)?;
        if !seen.insert(element.id()) {
            return Ok(());
        }
        if element.attr("itemprop").is_some_and(|names| !names.trim().is_empty()) {
            found.push(element);
        }
        if is_item(element) {
            return Ok(());
        }
        element.child_elements().try_for_each(|child| self.walk(child, seen, found))
    }

    fn value(&mut self, element: ElementRef<'a>) -> Result<Value, Failure> {
        let url = |name| {
            let url = element.attr(name).and_then(|link| self.base.resolve(link));
            url.map_or(Value::Null, Value::from)
        };
        let text = match element.value().name() {
            "audio" | "embed" | "iframe" | "img" | "source" | "track" | "video" => return Ok(url("src")),
            "a" | "area" | "link" => return Ok(url("href")),
            "object" => return Ok(url("data")),
            "meta" => element.attr("content").map(str::to_owned),
            "data" | "meter" => element.attr("value").map(str::to_owned),
            "time" => element.attr("datetime").map(str::to_owned),
            // Not in the standard, but common in shops.
            _ => element.attr("content").map(str::to_owned),
        };
        let text = text.unwrap_or_else(|| visible_lines(element));
        self.spend(text.len())?;
        Ok(legible(&text, MAX_TEXT).into())
    }

    fn spend(&mut self, cost: usize) -> Result<(), Failure> {
        let cost = self.page.cost.get() + cost;
        self.page.cost.set(cost);
        if cost > MAX_COST {
            return Err(Failure::new(Class::Parse, "items of microdata in each other without end"));
        }
        Ok(())
    }
}

fn is_item(element: ElementRef<'_>) -> bool {
    element.attr("itemscope").is_some()
}

fn types<'a>(element: ElementRef<'a>) -> impl Iterator<Item = &'a str> {
    element.attr("itemtype").unwrap_or_default().split_ascii_whitespace()
}

fn add(object: &mut Map<String, Value>, name: &str, value: Value) {
    match object.get_mut(name) {
        None => drop(object.insert(name.to_owned(), value)),
        Some(Value::Array(values)) => values.push(value),
        Some(first) => *first = Value::Array(vec![first.take(), value]),
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::UTF_8;
    use scraper::Html;
    use serde_json::json;
    use trawl_common::settings::Urls;

    use super::*;

    fn found(page: &str, name: &str) -> Value {
        let document = Html::parse_document(page);
        let (url, urls) = ("https://example.com/".parse().unwrap(), Urls::default());
        let base = Base::new(None, &url, &urls, UTF_8);
        Microdata::default().items(document.root_element(), name, &base).unwrap().into()
    }

    #[test]
    fn items_have_their_properties_and_other_items() {
        let page = "<div itemscope itemtype='https://schema.org/Product' itemid='/p'>\
            <h1 itemprop=name>A  thing</h1><img itemprop=image src=a.png><img itemprop=image src=b.png>\
            <div itemprop=offers itemscope itemtype=https://schema.org/Offer>\
            <meta itemprop=price content=3.50><time itemprop='from to' datetime=2024-05-01>soon</time></div></div>";
        let offer = json!({
            "@type": "https://schema.org/Offer", "price": "3.50", "from": "2024-05-01", "to": "2024-05-01",
        });
        let product = json!({
            "@type": "https://schema.org/Product", "@id": "https://example.com/p", "name": "A thing",
            "image": ["https://example.com/a.png", "https://example.com/b.png"], "offers": offer,
        });
        assert_eq!(found(page, "Product"), json!([product]));
        assert_eq!(found(page, "Offer"), json!([offer]));
        assert_eq!(found(page, "Person"), json!([]));
    }

    #[test]
    fn properties_may_stand_elsewhere_and_come_in_page_order() {
        let page = "<p id=a>x <b itemprop=n>1</b></p><div itemscope itemtype=T itemref='a c none'>\
            <i itemprop=n>2</i></div><i id=c itemprop=n>3</i>";
        assert_eq!(found(page, "T"), json!([{"@type": "T", "n": ["1", "2", "3"]}]));
    }

    #[test]
    fn lines_of_a_text_are_words_apart() {
        let page = "<div itemscope itemtype=T><div itemprop=n><p>One</p><p>two<br>three</p></div></div>";
        assert_eq!(found(page, "T"), json!([{"@type": "T", "n": "One two three"}]));
    }

    #[test]
    fn an_item_that_holds_itself_is_left_out_there() {
        let page = "<div id=a itemprop=p itemscope itemtype=T itemref=b></div>\
            <div id=b itemprop=q itemscope itemtype=U itemref=a></div>";
        assert_eq!(found(page, "T"), json!([{"@type": "T", "q": {"@type": "U"}}]));
    }
}

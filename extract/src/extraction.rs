//! The result of reading a page: items, links to follow, and missing fields.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::request::NewRequest;
use trawl_common::spider::Required;
use trawl_common::spider::item::{Item, item_id};
use trawl_common::task::NewTask;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;

/// The result of reading a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extraction {
    /// Its items.
    pub items: Vec<Extracted>,
    /// The links to follow as far as the page and `[follow]` decide, absolute and unique: the target of a refresh, the
    /// matches of `next`, then the others in page order. The spider's scope is not checked here.
    pub links: Vec<Link>,
    /// The links that are handed to another spider, with its name.
    pub handed: Vec<(SpiderName, Link)>,
    /// The tasks to which the page leads, each with the spider that does it.
    pub tasks: Vec<NewTask>,
    /// The page's canonical URL, if that is another page and the spider respects it.
    pub canonical: Option<CanonicalUrl>,
    /// The number of links beyond the limit for one page.
    pub left_out: u64,
    /// The required fields that were not found, each once.
    pub missing: Vec<Missing>,
    /// The required fields that were looked for, and whether an item of the page has each. Those of a kind of items
    /// follow its name: `product.price`.
    pub required: BTreeMap<String, bool>,
    /// Likewise, of the kind of items that is being read, without its name; empty once the page is read.
    pub looked_for: BTreeMap<String, bool>,
    /// The fields with a value that is not kept as it was found, each once.
    pub unfit: Vec<Unfit>,
    /// The number of the kind of page that it is; `None` if it is of none.
    pub kind: Option<usize>,
    /// The kinds of pages from the start to this one; `None` if it is of none.
    pub path: Option<Vec<String>>,
    /// The first condition that it does not meet, of each kind before that one.
    pub unmet: Vec<Unmet>,
    /// The state of the list that it is a page of.
    pub list: Option<ListState>,
    /// Whether it shows that the session has lapsed; then nothing else is read of it.
    pub lapsed: bool,
}

impl Extraction {
    /// Whether the page leads to no page and no task.
    pub(crate) fn leads_nowhere(&self) -> bool {
        self.links.is_empty() && self.handed.is_empty() && self.tasks.is_empty()
    }

    /// Records that a required field was looked for, and whether it was found.
    pub(crate) fn look(&mut self, path: &str, is_found: bool) {
        match self.looked_for.get_mut(path) {
            Some(found) => *found |= is_found,
            None => drop(self.looked_for.insert(path.to_owned(), is_found)),
        }
    }

    /// Records what was looked for as required fields of the kind of items with this name.
    pub(crate) fn end_kind(&mut self, name: Option<&str>) {
        for (path, is_found) in std::mem::take(&mut self.looked_for) {
            let field = name.map_or_else(|| path.clone(), |name| format!("{name}.{path}"));
            *self.required.entry(field).or_default() |= is_found;
        }
    }
}

/// A condition of a kind of page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmet {
    /// One of its patterns matches the URL.
    Url,
    /// The response has one of its media types.
    ContentType,
    /// One of its kinds or rules led to the page.
    From,
    /// Its selector finds something.
    Selector,
}

/// A value that a field does not keep as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The path of the field's name: `offers.price`.
    pub field: String,
    /// The beginning of the value.
    pub value: String,
    /// The reason why it is not kept: `it has no digit`.
    pub reason: &'static str,
    /// The values after each step of `transform`, for people: `split: `a`, `b``.
    pub steps: Vec<String>,
    /// Whether a part of the value is kept.
    pub is_cut: bool,
}

/// A required field that was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The path of its name: `offers.price`.
    pub field: String,
    /// How a page without it is handled.
    pub required: Required,
}

/// A link to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The target of the link.
    pub url: CanonicalUrl,
    /// The spelling on the page, if that differs.
    pub written: Option<CanonicalUrl>,
    /// The kind of its target.
    pub kind: LinkKind,
    /// The request for it; `None` for a plain GET.
    pub request: Option<Box<NewRequest>>,
}

/// The kind of the target of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// Another page.
    Page,
    /// A further page of the same list, which has the same depth.
    Next,
    /// A file that a `[[download]]` keeps, on whatever host, and whatever `[follow]` says.
    File,
}

/// One item.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extracted {
    /// The name of its kind.
    pub rule: Option<String>,
    /// The number of items of its kind before it on the page.
    pub number: usize,
    /// Its fields.
    pub fields: Map<String, Value>,
}

/// The page that an item is of.
#[derive(Clone, Copy, Debug)]
pub struct ItemPage<'a> {
    /// The crawl.
    pub crawl: &'a CrawlRef,
    /// The text from which the ids of its items are derived: its URL, or the key of its request.
    pub key: &'a str,
    /// The URL of its items.
    pub url: &'a CanonicalUrl,
    /// The URL that was admitted.
    pub admitted: &'a CanonicalUrl,
    /// The response.
    pub response: &'a Response,
    /// Number of links from the start.
    pub depth: u16,
}

impl Extracted {
    /// Returns the item as sinks take it. How it was reached and has changed is left out.
    pub fn into_item(self, page: &ItemPage<'_>) -> Item {
        let Self { rule, number, fields } = self;
        let ItemPage { crawl, key, url, admitted, response, depth } = *page;
        Item {
            id: item_id(&crawl.spider, key, rule.as_deref(), number),
            url: url.to_string(),
            crawl: crawl.id.clone(),
            spider: crawl.spider.clone(),
            fetched_at: response.fetched_at.to_string(),
            status: response.status,
            depth,
            item: rule,
            change: None,
            final_url: Some(response.redirected_to.as_ref().unwrap_or(admitted))
                .filter(|from| *from != url)
                .map(ToString::to_string),
            referrer: None,
            path: None,
            fields,
        }
    }
}

/// The state of a list after one of its pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListState {
    /// Number of its pages so far, this one included.
    pub pages: u64,
    /// The reason why it ends here; `None` if it goes on.
    pub end: Option<ListEnd>,
}

/// The reason why a list ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListEnd {
    /// A page has no entries.
    Empty,
    /// A page has what the page before it has.
    Repeated,
    /// A page names no next page.
    NoNext,
    /// The list has as many pages as it may have.
    Limit,
}

impl fmt::Display for ListEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the page is empty",
            Self::Repeated => "the page repeats the one before it",
            Self::NoNext => "the page names no next page",
            Self::Limit => "it has as many pages as `most` allows",
        })
    }
}

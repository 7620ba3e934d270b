//! The response that fields are extracted from, with everything parsed from it.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use scraper::{ElementRef, Html};
use serde_json::Value;
use trawl_common::frontier::Request;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::spider::{Carried, PageField};
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;

use crate::document::base::{Base, without_fragment};
use crate::document::elements::Elements;
use crate::document::found::Found;
use crate::document::json;
use crate::document::microdata::Microdata;
use crate::document::page::Page;
use crate::limits::MAX_LINKS;
use crate::usage;
use crate::values::main_text;
use crate::values::markdown::markdown;
use crate::values::simhash::simhash;
use crate::xpath::{self, Nodes, XPath};

/// A response and everything parsed from it.
pub(crate) struct Context<'a> {
    pub(crate) response: &'a Response,
    /// The values that the pages that led here passed on, and the way to it.
    pub(crate) came: Option<&'a Carried>,
    /// The request that led to it; `None` for a plain URL.
    pub(crate) request: Option<&'a Request>,
    /// The URL the response came from, after redirects.
    pub(crate) url: &'a CanonicalUrl,
    /// The name by which pages address the crawler.
    pub(crate) robots_name: &'a str,
    /// The base of the page's links.
    pub(crate) base: &'a Base<'a>,
    /// The findings of the page that single tags give; empty unless it is HTML.
    pub(crate) page: &'a Page<'a>,
    /// The JSON-LD objects of each type that the spider asks for.
    pub(crate) json_ld: &'a [Vec<Value>],
    /// The values in the scripts of each name that the spider asks for.
    pub(crate) scripts: &'a [Vec<Value>],
    /// The tree of the page, or `None` if no field needs one.
    pub(crate) tree: Option<&'a Html>,
    /// The elements of the tree.
    pub(crate) elements: &'a Elements<'a>,
    /// The parsed document, or `None` if it is not JSON.
    pub(crate) json: Option<&'a Value>,
    pub(crate) given_up: &'a AtomicBool,
    /// The nodes of the tree for XPath, listed on first use.
    pub(crate) nodes: OnceCell<Nodes<'a>>,
    /// The number of steps that XPath has taken on the page.
    pub(crate) steps: Cell<u64>,
    pub(crate) microdata: Microdata<'a>,
    /// The main text, computed on first use.
    pub(crate) text: OnceCell<String>,
}

/// The part of a response that a field is looked for in.
#[derive(Clone, Copy)]
pub(crate) enum Within<'a> {
    /// The whole response.
    All,
    Element(ElementRef<'a>),
    Json(&'a Value),
}

impl<'a> Context<'a> {
    /// Returns the element that fields are looked for in, or `None` for JSON.
    pub(crate) fn element(&self, within: Within<'a>) -> Option<ElementRef<'a>> {
        match within {
            Within::All => self.tree.map(Html::root_element),
            Within::Element(element) => Some(element),
            Within::Json(_) => None,
        }
    }

    /// Returns the JSON value that fields are looked for in, or `None` for HTML.
    pub(crate) fn value(&self, within: Within<'a>) -> Option<&'a Value> {
        match within {
            Within::All => self.json,
            Within::Element(_) => None,
            Within::Json(value) => Some(value),
        }
    }

    /// Returns the values of a property of the page itself, such as its title.
    pub(crate) fn own(&self, field: PageField) -> Vec<Found<'a>> {
        let page = self.page;
        let text = |text: Option<&'a String>| text.map(|text| Found::text(text)).into_iter().collect();
        let json = |value: Value| vec![Found::Json(Cow::Owned(value))];
        match field {
            PageField::Title => vec![Found::text(&page.title)],
            PageField::Description => text(page.meta.description.as_ref()),
            PageField::Language => text(page.language.as_ref().or(page.meta.language.as_ref())),
            PageField::LinkCount => json(page.link_count.into()),
            PageField::Canonical => {
                let canonical = page.canonical.as_ref().and_then(|link| self.base.link(link));
                canonical.into_iter().map(|link| Found::Text(String::from(link).into())).collect()
            }
            PageField::Url => vec![Found::text(self.url.as_str())],
            PageField::Text => self.main_text().map(|text| Found::Text(text.into())).into_iter().collect(),
            PageField::Simhash => {
                let hash = self.main_text().and_then(|text| simhash(&text));
                hash.map(|hash| Found::Text(hash.into())).into_iter().collect()
            }
            PageField::Markdown => {
                let read = |tree: &Html| Found::Text(markdown(tree.root_element(), self.base).into());
                self.tree.map(read).into_iter().collect()
            }
            PageField::Links => self.links(),
            PageField::Usage => {
                let usage = usage::usage(self.response, &self.page.meta, self.robots_name);
                if usage.is_empty() { Vec::new() } else { json(usage.into()) }
            }
        }
    }

    /// Returns the main text of a page with a tree.
    fn main_text(&self) -> Option<String> {
        let read = |tree: &Html| self.text.get_or_init(|| main_text::text(tree.root_element())).clone();
        self.tree.map(read)
    }

    /// Returns the page's links as absolute URLs without duplicates, up to the number that an item can hold.
    fn links(&self) -> Vec<Found<'a>> {
        let (mut written, mut seen) = (HashSet::new(), HashSet::new());
        let mut budget = MAX_LINKS;
        // About half of a page's links repeat another one or differ from it only in their fragment, so drop those
        // before resolving.
        let links = self.page.links.iter().map(|link| without_fragment(&link.href));
        let links = links.filter(|link| written.insert(*link)).filter_map(|link| self.base.link(link));
        let links = links.filter(|link| seen.insert(link.clone())).take_while(|link| {
            budget = budget.saturating_sub(link.as_str().len());
            budget > 0
        });
        links.map(|link| Found::Text(String::from(link).into())).collect()
    }

    /// Returns the values that an XPath expression finds at an element; none once all of them took too long on the
    /// page, after which [`goes_on`](Self::goes_on) fails.
    pub(crate) fn xpath(&'a self, xpath: &XPath, at: ElementRef<'a>) -> impl Iterator<Item = Found<'a>> + 'a {
        let nodes = self.tree.map(|tree| self.nodes.get_or_init(|| Nodes::new(tree)));
        let value = nodes.and_then(|nodes| {
            let at = nodes.id(at)?;
            xpath.evaluate(nodes, at, &self.steps, &|| self.is_given_up()).ok()
        });
        let (found, single) = match value {
            Some(xpath::Value::Nodes(found)) => (found, None),
            Some(xpath::Value::Text(text)) => (Vec::new(), Some(Found::Text(text.into()))),
            Some(xpath::Value::Number(number)) => {
                (Vec::new(), json::number(number).map(|number| Found::Json(Cow::Owned(number))))
            }
            Some(xpath::Value::Truth(truth)) => (Vec::new(), Some(Found::Json(Cow::Owned(truth.into())))),
            None => (Vec::new(), None),
        };
        let found = found.into_iter().zip(std::iter::repeat(nodes));
        single.into_iter().chain(found.filter_map(|(id, nodes)| nodes.map(|nodes| nodes.found(id))))
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Returns an error if the page was given up.
    pub(crate) fn goes_on(&self) -> Result<(), Failure> {
        if self.is_given_up() {
            return Err(Failure::new(Class::Parse, "given up"));
        }
        if self.steps.get() > xpath::MAX_STEPS {
            return Err(Failure::new(Class::Parse, "the XPath expressions take too many steps on this page"));
        }
        Ok(())
    }
}

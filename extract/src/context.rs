//! One response, as fields look at it.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use scraper::{ElementRef, Html};
use serde_json::Value;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::ports::Response;
use trawl_common::spider::PageField;
use trawl_common::web::url::CanonicalUrl;

use crate::document::base::{Base, without_fragment};
use crate::document::found::Found;
use crate::document::microdata::Microdata;
use crate::document::stream::Page;
use crate::limits::MAX_LINKS;
use crate::values::main_text;

/// Everything that is known of a response.
pub(crate) struct Context<'a> {
    pub(crate) response: &'a Response,
    /// The URL that answered.
    pub(crate) url: &'a CanonicalUrl,
    /// What its links are relative to.
    pub(crate) base: &'a Base<'a>,
    /// What the streaming pass found: nothing in JSON.
    pub(crate) page: &'a Page,
    /// The objects of each type of JSON-LD that is asked for.
    pub(crate) json_ld: &'a [Vec<Value>],
    /// The tree, if one is needed.
    pub(crate) tree: Option<&'a Html>,
    /// The document, if it is JSON.
    pub(crate) json: Option<&'a Value>,
    pub(crate) given_up: &'a AtomicBool,
    pub(crate) microdata: Microdata<'a>,
    /// The main text, once it is asked for.
    pub(crate) text: OnceCell<String>,
}

/// Where fields are looked for.
#[derive(Clone, Copy)]
pub(crate) enum Within<'a> {
    /// All of the response.
    All,
    Element(ElementRef<'a>),
    Json(&'a Value),
}

impl<'a> Context<'a> {
    /// The element that fields are looked for in; none in JSON.
    pub(crate) fn element(&self, within: Within<'a>) -> Option<ElementRef<'a>> {
        match within {
            Within::All => self.tree.map(Html::root_element),
            Within::Element(element) => Some(element),
            Within::Json(_) => None,
        }
    }

    /// The JSON that fields are looked for in; none in HTML.
    pub(crate) fn value(&self, within: Within<'a>) -> Option<&'a Value> {
        match within {
            Within::All => self.json,
            Within::Element(_) => None,
            Within::Json(value) => Some(value),
        }
    }

    /// What the page says of itself.
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
            PageField::Text => {
                let read =
                    |tree: &Html| self.text.get_or_init(|| main_text::text(tree.root_element())).clone();
                self.tree.map(|tree| Found::Text(read(tree).into())).into_iter().collect()
            }
            PageField::Links => self.links(),
        }
    }

    /// The page's links, absolute, each once, as many as an item can hold.
    fn links(&self) -> Vec<Found<'a>> {
        let (mut written, mut seen) = (HashSet::new(), HashSet::new());
        let mut budget = MAX_LINKS;
        // Half of a page's links are written like others of it, or lead to another part of the same page.
        let links = self.page.links.iter().map(|link| without_fragment(&link.href));
        let links = links.filter(|link| written.insert(*link)).filter_map(|link| self.base.link(link));
        let links = links.filter(|link| seen.insert(link.clone())).take_while(|link| {
            budget = budget.saturating_sub(link.as_str().len());
            budget > 0
        });
        links.map(|link| Found::Text(String::from(link).into())).collect()
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Fails once the page is given up.
    pub(crate) fn goes_on(&self) -> Result<(), Failure> {
        if self.is_given_up() { Err(Failure::new(Class::Parse, "given up")) } else { Ok(()) }
    }
}

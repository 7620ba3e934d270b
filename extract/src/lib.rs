//! From a response to the items and links that a spider asks for. No I/O.

mod base;
mod charset;
mod date;
mod field;
mod follow;
mod item;
mod json;
mod json_ld;
mod kind;
mod markup;
mod microdata;
mod notation;
mod number;
mod plan;
mod planner;
mod query;
mod raw;
mod readable;
mod room;
mod scene;
mod stream;
mod streamable;
mod table;
#[cfg(test)]
mod tests;
mod tree;
mod unfinished;

use std::sync::atomic::AtomicBool;

use encoding_rs::UTF_8;
use scraper::Html;
use serde_json::{Map, Value};
use trawl_common::outcome::{Class, Failure};
use trawl_common::ports::Response;
use trawl_common::settings::Urls;
use trawl_common::sniff::{self, is_html};
use trawl_common::spider::{Mistake, Required, Spider};
use trawl_common::url::CanonicalUrl;

use self::base::Base;
use self::plan::{Format, Plan};
use self::planner::Planner;
use self::scene::Scene;
use self::stream::{Page, Reader};

/// The most bytes of a text field; what is longer is cut.
pub const MAX_TEXT: usize = 64 * 1024;
/// The most bytes of the links that are listed, or followed.
const MAX_LINKS: usize = 3 << 19;

/// Reads items and links from responses, as one spider asks for. One serves all threads.
#[derive(Debug)]
pub struct Extractor {
    plan: Plan,
    reader: Reader,
    urls: Urls,
}

/// What a page gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extraction {
    /// Its items.
    pub items: Vec<Extracted>,
    /// The links to follow as far as the page and `[follow]` have a say, absolute, each once: where a refresh
    /// leads, what `next` finds, then the others in page order. Which of them are within the spider's scope is
    /// not looked at here.
    pub links: Vec<Link>,
    /// The page that this one names as canonical, if that is another and the spider goes by it.
    pub canonical: Option<CanonicalUrl>,
    /// How many more links the page has than are followed of one.
    pub left_out: u64,
    /// The required fields that were not found, each once.
    pub missing: Vec<Missing>,
}

/// A required field that was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its name, with those of what it lies in: `offers.price`.
    pub field: String,
    /// What the page is without it.
    pub required: Required,
}

/// A link to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where it leads.
    pub url: CanonicalUrl,
    /// Whether `next` found it: what it leads to is as deep as the page.
    pub is_next: bool,
}

/// One item.
#[derive(Clone, Debug, PartialEq)]
pub struct Extracted {
    /// The name of its kind.
    pub rule: Option<String>,
    /// How many of its kind come before it on the page.
    pub number: usize,
    /// Its fields.
    pub fields: Map<String, Value>,
}

impl Extractor {
    /// The extractor of a spider. The mistakes are all that are in its selectors, patterns and paths.
    ///
    /// Which fields the streaming pass answers and which need a tree is decided here.
    pub fn new(spider: &Spider) -> Result<Self, Vec<Mistake>> {
        Ok(Self { urls: spider.urls.clone(), ..Self::of(Planner::of(spider, true))? })
    }

    fn of(Planner { plan, wanted, mistakes, .. }: Planner) -> Result<Self, Vec<Mistake>> {
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        Ok(Self { plan, reader: Reader::new(wanted), urls: Urls::default() })
    }

    /// Whether a tree is built of every page, which takes several times as long as the streaming pass alone.
    pub fn needs_tree(&self) -> bool {
        self.plan.needs_tree
    }

    /// Whether a response is of a kind that this spider reads: HTML, and JSON if it looks for something in it.
    pub fn reads(&self, response: &Response) -> bool {
        self.format(response).is_some()
    }

    /// What the page that `url` answered with gives. A field that the page says nothing about is null, or an empty list.
    ///
    /// Text is free of control characters and at most [`MAX_TEXT`] long; an item is less than 8 MB of JSON.
    ///
    /// No I/O, and time in proportion to the page. One whose tree would take longer is a failure of class `parse`, and
    /// so is one that is not ready some time after `given_up` is set.
    pub fn extract(
        &self,
        url: &CanonicalUrl,
        response: &Response,
        given_up: &AtomicBool,
    ) -> Result<Extraction, Failure> {
        let mut page = Page::default();
        let mut tree = None;
        let mut json = None;
        match self.format(response) {
            Some(Format::Json) => {
                let read = json::parse(&response.body);
                json = Some(read.map_err(|reason| Failure::new(Class::Parse, reason))?);
            }
            _ => {
                let (html, encoding) = charset::decode(&response.body, response.content_type());
                page = Page { encoding: Some(encoding), ..self.reader.read(&html)? };
                tree = self.plan.needs_tree.then(|| tree::build(&html, given_up)).transpose()?;
            }
        }
        self.look(url, response, &page, tree.as_ref(), json.as_ref(), given_up)
    }

    fn format(&self, response: &Response) -> Option<Format> {
        let is_json = |essence| self.plan.reads_json && json::is_json(essence);
        if response.content_type().map(sniff::essence).is_some_and(is_json) {
            return Some(Format::Json);
        }
        is_html(response.content_type(), &response.body).then_some(Format::Html)
    }

    /// Looks for items and links in what was read.
    fn look(
        &self,
        url: &CanonicalUrl,
        response: &Response,
        page: &Page,
        tree: Option<&Html>,
        json: Option<&Value>,
        given_up: &AtomicBool,
    ) -> Result<Extraction, Failure> {
        let url = response.redirected_to.as_ref().unwrap_or(url);
        let scene = Scene {
            response,
            url,
            base: &Base::of(page.base.as_deref(), url, &self.urls, page.encoding.unwrap_or(UTF_8)),
            page,
            json_ld: &json_ld::objects(&page.json_ld, &self.reader.wanted.json_ld),
            tree,
            json,
            given_up,
            microdata: Default::default(),
            text: Default::default(),
        };
        let mut extraction = Extraction::default();
        let mut is_item = true;
        if let Some(follow) = &self.plan.follow {
            let leave = follow.leave(&scene);
            is_item = leave.index;
            extraction.canonical = follow.elsewhere(&scene);
            (extraction.links, extraction.left_out) = follow.links(&scene, leave);
        }
        if is_item {
            item::add_items(&self.plan.rules, &scene, &mut extraction)?;
        }
        Ok(extraction)
    }
}

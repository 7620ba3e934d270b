//! From a response to the items and links that a spider asks for. No I/O.

mod charset;
mod css;
mod markup;
mod page;
mod sniff;
#[cfg(test)]
mod tests;
mod text;
mod tree;
mod unfinished;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value};
use trawl_common::outcome::{Class, Failure};
use trawl_common::ports::Response;
use trawl_common::spider::{From, Mistake, PageField, Spider};
use trawl_common::url::{CanonicalUrl, MAX_URL_BYTES};
use url::Url;

use self::css::Query;
use self::page::{Page, Reader};
pub use self::sniff::is_html;

/// The most bytes of a text field; what is longer is cut.
pub const MAX_TEXT: usize = 64 * 1024;
/// The most bytes of all fields by selector together: more than 32 share it, each with the same part.
const MAX_OWN_TEXT: usize = 2 << 20;
/// The most bytes of the links that are listed. With the fields, and each byte written as two, an item stays below 8 MB.
const MAX_LINKS: usize = 3 << 19;

/// Reads items and links from responses, as one spider asks for. One serves all threads.
#[derive(Debug)]
pub struct Extractor {
    reader: Reader,
    queries: Vec<(String, Query)>,
}

/// What a page gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extraction {
    /// Its items.
    pub items: Vec<Extracted>,
    /// The links to follow as far as the page and `[follow]` have a say, absolute, each once, in page order. Which of
    /// them are within the spider's scope is not looked at here.
    pub links: Vec<CanonicalUrl>,
    /// The required fields that were not found, each once.
    pub missing: Vec<String>,
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
    pub fn new(spider: &Spider) -> Result<Self, Vec<Mistake>> {
        let mut queries = Vec::new();
        let mut mistakes = Vec::new();
        let mut links = false;
        for (name, field) in spider.items.iter().flat_map(|rule| &rule.fields) {
            match &field.from {
                From::Css(selector) => match Query::parse(&selector.value) {
                    Ok(query) => queries.push((name.clone(), query)),
                    Err(reason) => mistakes.push(Mistake::at(
                        selector,
                        format_args!("fields.{name}: `{}` is not a selector: {reason}", selector.value),
                    )),
                },
                From::Page(PageField::Links) => links = true,
                _ => {}
            }
        }
        if mistakes.is_empty() { Ok(Self { reader: Reader::new(links), queries }) } else { Err(mistakes) }
    }

    /// Whether a tree is built of every page, which takes several times as long as the default fields.
    pub fn needs_tree(&self) -> bool {
        !self.queries.is_empty()
    }

    /// Whether a response is of a kind that this spider reads.
    pub fn reads(&self, response: &Response) -> bool {
        is_html(response.content_type(), &response.body)
    }

    /// What the page that `url` answered with gives. A field that the page says nothing about is null.
    ///
    /// Text is free of control characters and at most [`MAX_TEXT`] long; an item of these fields is less than 8 MB of
    /// JSON.
    ///
    /// No I/O, and time in proportion to the page. One whose tree would take longer is a failure of class `parse`, and
    /// so is one that is not ready some time after `given_up` is set.
    pub fn extract(
        &self,
        url: &CanonicalUrl,
        response: &Response,
        given_up: &AtomicBool,
    ) -> Result<Extraction, Failure> {
        let html = charset::decode(&response.body, response.content_type());
        let page = self.reader.read(&html)?;
        let mut fields = default_fields(page, response.redirected_to.as_ref().unwrap_or(url));
        if self.needs_tree() {
            let document = tree::build(&html, given_up)?;
            let max = MAX_TEXT.min(MAX_OWN_TEXT / self.queries.len());
            for (name, query) in &self.queries {
                if given_up.load(Ordering::Relaxed) {
                    return Err(Failure::new(Class::Parse, "given up"));
                }
                fields.insert(name.clone(), query.first(&document, max));
            }
        }
        Ok(Extraction { items: vec![Extracted { rule: None, number: 0, fields }], ..Extraction::default() })
    }
}

fn default_fields(page: Page, url: &CanonicalUrl) -> Map<String, Value> {
    let base = base_url(&page, url);
    let text = |text: Option<String>| text.map_or(Value::Null, |text| text::value(&text, MAX_TEXT));
    let canonical = page.canonical.and_then(|link| absolute(&base, &link));
    let mut fields = Map::new();
    let mut put = |name: &str, value| fields.insert(name.to_owned(), value);
    put("title", text::value(&page.title, MAX_TEXT));
    put("description", text(page.description));
    put("canonical", canonical.map_or(Value::Null, |link| link.as_str().into()));
    put("language", text(page.language.or(page.content_language)));
    put("link_count", page.link_count.into());
    if let Some(links) = page.links {
        put("links", distinct(links.iter().filter_map(|link| absolute(&base, link))));
    }
    fields
}

/// What the page's links are relative to: its `<base>`, unless nothing can be relative to that.
fn base_url(page: &Page, url: &CanonicalUrl) -> Url {
    let url = url.to_url();
    // Every link is joined to it: a long one would be copied as often.
    let base = page.base.as_ref().filter(|base| base.len() <= MAX_URL_BYTES);
    let base = base.and_then(|base| url.join(base).ok());
    base.filter(|base| !base.cannot_be_a_base()).unwrap_or(url)
}

/// Where a link points, if that can be crawled.
fn absolute(base: &Url, link: &str) -> Option<CanonicalUrl> {
    if link.len() > MAX_URL_BYTES {
        return None;
    }
    CanonicalUrl::from_url(base.join(link).ok()?).ok()
}

/// The links without repetition, as far as there is room.
fn distinct(links: impl Iterator<Item = CanonicalUrl>) -> Value {
    let mut seen = HashSet::new();
    let mut room = MAX_LINKS;
    let mut fits = |link: &CanonicalUrl| {
        room = room.saturating_sub(link.as_str().len() + "\"\",".len());
        room > 0
    };
    let links = links.filter(|link| seen.insert(link.clone())).take_while(|link| fits(link));
    links.map(|link| Value::from(link.as_str())).collect()
}

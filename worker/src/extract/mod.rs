//! Turning a response into an item's fields.

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
use trawl_common::settings;
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

/// Reads the fields of items from pages. One serves all threads.
#[derive(Debug)]
pub struct Extractor {
    reader: Reader,
    queries: Vec<(String, Query)>,
}

/// A field in `items.fields` whose selector cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("items.fields.{field}: `{selector}` is not a selector: {reason}")]
pub struct BadSelector {
    /// The field.
    pub field: String,
    /// The selector as written.
    pub selector: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Extractor {
    /// An extractor of the default fields and of those that `settings` adds.
    pub fn new(settings: &settings::Items) -> Result<Self, BadSelector> {
        let query = |(field, selector): (&String, &String)| match Query::parse(selector) {
            Ok(query) => Ok((field.clone(), query)),
            Err(reason) => Err(BadSelector { field: field.clone(), selector: selector.clone(), reason }),
        };
        let queries = settings.fields.iter().map(query).collect::<Result<_, _>>()?;
        Ok(Self { reader: Reader::new(settings.links), queries })
    }

    /// Whether a tree is built of every page, which takes several times as long as the default fields.
    pub fn needs_tree(&self) -> bool {
        !self.queries.is_empty()
    }

    /// The fields of the page that `url` answered with: `title`, `description`, `canonical`, `language`,
    /// `link_count`, by setting `links`, and the settings' own, which may replace these. A field that the
    /// page says nothing about is null.
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
    ) -> Result<Map<String, Value>, Failure> {
        let html = charset::decode(&response.body, response.content_type.as_deref());
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
        Ok(fields)
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

//! Turning a response into an item's fields.

mod charset;
mod css;
mod markup;
mod nesting;
mod page;
mod sniff;
#[cfg(test)]
mod tests;
mod text;

use std::collections::HashSet;

use scraper::Html;
use serde_json::{Map, Value};
use trawl_common::outcome::Failure;
use trawl_common::ports::Response;
use trawl_common::settings;
use trawl_common::url::CanonicalUrl;
use url::Url;

use self::css::Query;
use self::page::{Page, Reader};
pub use self::sniff::is_html;

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
    /// No I/O, and time in proportion to the page, except that the settings' own fields need a tree. A page
    /// that looks as if its tree took longer is a failure of class `parse`.
    pub fn extract(&self, url: &CanonicalUrl, response: &Response) -> Result<Map<String, Value>, Failure> {
        let html = charset::decode(&response.body, response.content_type.as_deref());
        let page = self.reader.read(&html)?;
        let mut fields = default_fields(page, response.redirected_to.as_ref().unwrap_or(url));
        if self.needs_tree() {
            nesting::check(&html)?;
            let document = Html::parse_document(&html);
            fields.extend(self.queries.iter().map(|(name, query)| (name.clone(), query.first(&document))));
        }
        Ok(fields)
    }
}

fn default_fields(page: Page, url: &CanonicalUrl) -> Map<String, Value> {
    let base = base_url(&page, url);
    let text = |text: Option<String>| text.map_or(Value::Null, |text| text::value(&text));
    let canonical = page.canonical.and_then(|link| absolute(&base, &link));
    let mut fields = Map::new();
    let mut put = |name: &str, value| fields.insert(name.to_owned(), value);
    put("title", text::value(&page.title));
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
    let base = page.base.as_ref().and_then(|base| url.join(base).ok());
    base.filter(|base| !base.cannot_be_a_base()).unwrap_or(url)
}

/// Where a link points, if that can be crawled.
fn absolute(base: &Url, link: &str) -> Option<CanonicalUrl> {
    CanonicalUrl::from_url(base.join(link).ok()?).ok()
}

fn distinct(links: impl Iterator<Item = CanonicalUrl>) -> Value {
    let mut seen = HashSet::new();
    links.filter(|link| seen.insert(link.clone())).map(|link| Value::from(link.as_str())).collect()
}

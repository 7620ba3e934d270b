//! Turning a response into an item's fields.

use serde_json::{Map, Value};
use trawl_common::outcome::Failure;
use trawl_common::ports::Response;
use trawl_common::settings;
use trawl_common::url::CanonicalUrl;

/// A selector of `items.fields` that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("items.fields.{field}: `{selector}`: {reason}")]
pub struct BadSelector {
    /// The field's name.
    pub field: String,
    /// The selector as set.
    pub selector: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Reads the fields of items from pages.
pub struct Extractor {}

impl Extractor {
    /// An extractor for these settings.
    pub fn new(_settings: &settings::Items) -> Result<Self, BadSelector> {
        unimplemented!()
    }

    /// The fields of a page.
    pub fn extract(&self, _url: &CanonicalUrl, _response: &Response) -> Result<Map<String, Value>, Failure> {
        unimplemented!()
    }
}

/// Whether a response is HTML.
pub fn is_html(_content_type: Option<&str>, _body: &[u8]) -> bool {
    unimplemented!()
}

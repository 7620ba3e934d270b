//! A submitted request.

use std::fmt;

use data_encoding::BASE64;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::body::Body;
use super::failures::Failures;
use super::method::Method;
use crate::priority::Priority;
use crate::task::Unique;
use crate::web::url::CanonicalUrl;

/// Maximum size of a request as JSON, in bytes.
pub const MAX_REQUEST_BYTES: usize = 1024 * 1024;

/// Maximum size of its header fields and cookies together, in bytes.
pub(crate) const MAX_FIELDS_BYTES: usize = 16 * 1024;

/// Maximum size of its data as JSON, in bytes.
pub const MAX_DATA_BYTES: usize = 64 * 1024;

/// A submitted request: an element of `urls` from a handler or a caller of the API, a line of a list, or the body
/// of a message.
///
/// It is written as a JSON string, which is the URL, or as an object:
///
/// | key | value | default |
/// |---|---|---|
/// | `url` | the URL; on a page it may be relative | an error |
/// | `method` | GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS | GET |
/// | `headers` | an object of texts, or a list of pairs | none |
/// | `cookies` | an object of texts, or a list of pairs | none |
/// | `body` | text | no body |
/// | `base64` | in place of `body`: a body that is no text, in base64 (RFC 4648 4) | no body |
/// | `data` | any JSON, which is passed to the program with the page | none |
/// | `unique` | text; a spider takes in one request with this text, URL and method | the body |
/// | `any_status` | `true`: any response is its page | only a success is its page |
/// | `failures` | `last` or `each`: the failures that its spider's program is given in place of a page | none |
/// | `priority` | any number: above 0 it is urgent ([`Lane::of`](crate::frontier::lane::Lane::of)) | 0 |
/// | `retries` | maximum number of retries | the limit of settings and its spider |
///
/// A key with the value `null` counts as left out.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct NewRequest {
    /// The URL, as it is written.
    pub url: String,
    /// The method.
    pub method: Method,
    /// The header fields, with names in lower case.
    pub headers: Pairs,
    /// Cookies.
    pub cookies: Pairs,
    /// The body.
    pub body: Body,
    /// The data that the spider's program is given with the page.
    pub data: Option<Value>,
    /// The text by which it is unique; `None` for its body.
    pub unique: Option<Unique>,
    /// Whether any response is its page, whatever its status and type: then no redirect is followed, no status is
    /// a failure, and a program gets the body byte for byte.
    pub any_status: bool,
    /// The failures that the spider's program is given in place of a page; `None` for none.
    pub failures: Option<Failures>,
    /// The priority, the highest first.
    pub priority: Priority,
    /// Maximum number of retries; `None` for the limit of the settings and its spider.
    pub retries: Option<u32>,
}

/// Names and values, in order.
#[derive(Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Pairs(pub Vec<(String, String)>);

impl Pairs {
    /// Returns the names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the pairs with their names in lower case.
    pub(super) fn in_lower_case(mut self) -> Self {
        self.0.iter_mut().for_each(|(name, _)| name.make_ascii_lowercase());
        self
    }

    /// Returns their size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.len()).sum()
    }
}

/// Shows only the names, because values may be secrets.
impl fmt::Debug for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl NewRequest {
    /// Creates a plain GET of a URL.
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            method: Method::default(),
            headers: Pairs::default(),
            cookies: Pairs::default(),
            body: Body::default(),
            data: None,
            unique: None,
            any_status: false,
            failures: None,
            priority: Priority::default(),
            retries: None,
        }
    }

    /// Returns whether it is a plain GET, which its URL describes in full.
    pub fn is_plain(&self) -> bool {
        *self == Self::get(self.url.as_str())
    }

    /// Returns it as JSON, on one line; a plain GET as a string.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("text and JSON are JSON")
    }
}

impl From<CanonicalUrl> for NewRequest {
    fn from(url: CanonicalUrl) -> Self {
        Self::get(url.to_string())
    }
}

/// Leaves out the body, the data, and the values of header fields and cookies, because they may be secrets.
impl fmt::Debug for NewRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("NewRequest");
        shown.field("url", &self.url).field("method", &self.method).field("headers", &self.headers);
        shown
            .field("cookies", &self.cookies)
            .field("body", &self.body)
            .field("has_data", &self.data.is_some());
        shown.finish_non_exhaustive()
    }
}

impl Serialize for NewRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_plain() {
            return serializer.serialize_str(&self.url);
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("url", &self.url)?;
        if self.method != Method::default() {
            map.serialize_entry("method", &self.method)?;
        }
        for (key, pairs) in [("headers", &self.headers), ("cookies", &self.cookies)] {
            if !pairs.0.is_empty() {
                map.serialize_entry(key, pairs)?;
            }
        }
        match self.body.text() {
            Some("") => {}
            Some(text) => map.serialize_entry("body", text)?,
            None => map.serialize_entry("base64", &BASE64.encode(self.body.bytes()))?,
        }
        if let Some(data) = &self.data {
            map.serialize_entry("data", data)?;
        }
        if let Some(unique) = &self.unique {
            map.serialize_entry("unique", unique)?;
        }
        if self.any_status {
            map.serialize_entry("any_status", &true)?;
        }
        if let Some(failures) = self.failures {
            map.serialize_entry("failures", &failures)?;
        }
        if self.priority != Priority::default() {
            map.serialize_entry("priority", &self.priority)?;
        }
        if let Some(retries) = self.retries {
            map.serialize_entry("retries", &retries)?;
        }
        map.end()
    }
}

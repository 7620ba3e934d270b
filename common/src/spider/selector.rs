//! Selectors of parts of a response.

use std::fmt;

use crate::mistake::Sited;

/// A selector of elements of a page, or of values of JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// A CSS selector in the notation of Scrapy; or a JSON Pointer or JSONPath into a JSON response, which begins with
    /// `/` or `$`.
    Text(Sited<String>),
    /// `xpath`: an XPath 1.0 expression.
    XPath(Sited<String>),
    /// `script`: the values in scripts of this name, and with `path` the values in each that it leads to.
    Script(Sited<String>, Option<Sited<String>>),
}

impl Selector {
    /// Returns the text that says where it is looked for, with its place.
    pub fn text(&self) -> &Sited<String> {
        match self {
            Self::Text(text) | Self::XPath(text) | Self::Script(text, _) => text,
        }
    }
}

impl From<Sited<String>> for Selector {
    fn from(text: Sited<String>) -> Self {
        Self::Text(text)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Script(name, Some(path)) => write!(f, "{} {}", name.value, path.value),
            selector => f.write_str(&selector.text().value),
        }
    }
}

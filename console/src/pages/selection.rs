//! A selection of dead letters, in a form's fields and for the API.

use serde::{Deserialize, Serialize};

use crate::address::address;
use crate::ask::Call;
use crate::form::{text_of, written};
use crate::shown::Text;

/// A filter. An empty field matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Selection {
    pub(crate) crawl: Option<String>,
    pub(crate) spider: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) older_than: Option<String>,
}

/// The request to the API for an action on the selection.
#[derive(Serialize)]
pub(crate) struct Order<'a> {
    all: bool,
    crawl: Option<&'a str>,
    spider: Option<&'a str>,
    urls: Vec<&'a str>,
    reason: Option<&'a str>,
    host: Option<&'a str>,
    older_than: Option<&'a str>,
    cursor: Option<&'a str>,
}

impl Selection {
    /// The non-empty fields.
    pub(crate) fn fields(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("crawl", &self.crawl),
            ("spider", &self.spider),
            ("url", &self.url),
            ("reason", &self.reason),
            ("host", &self.host),
            ("older_than", &self.older_than),
        ];
        // A text that is not a URL may begin with a space, which is kept.
        let said = |(name, field): (&'static str, _)| match name {
            "url" => Some((name, self.url.as_deref().filter(|url| !url.is_empty())?)),
            _ => Some((name, written(field)?)),
        };
        all.into_iter().filter_map(said).collect()
    }

    /// The value of a field; empty if it has none.
    pub(crate) fn field(&self, name: &str) -> &str {
        text_of(&self.fields(), name)
    }

    /// The value of a field for its input.
    pub(crate) fn shown(&self, name: &str) -> Text {
        self.field(name).into()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields().is_empty()
    }

    /// The address of a page for this selection.
    pub(crate) fn path(&self, page: &str) -> String {
        self.path_with(page, [])
    }

    /// The address of a page for this selection, with further parameters.
    pub(crate) fn path_with(
        &self,
        page: &str,
        more: impl IntoIterator<Item = (&'static str, String)>,
    ) -> String {
        let fields = self.fields().into_iter().map(|(name, value)| (name, value.to_owned()));
        address(page, fields.chain(more))
    }

    /// The call that lists the selection.
    pub(crate) fn call(&self) -> Call {
        self.call_for(&["dead-letters"])
    }

    /// Another call for the selection.
    pub(crate) fn call_for(&self, segments: &[&str]) -> Call {
        let call = Call::get(segments);
        self.fields().into_iter().fold(call, |call, (name, value)| call.with(name, value))
    }

    pub(crate) fn order<'a>(&'a self, cursor: Option<&'a str>) -> Order<'a> {
        let field = |name| Some(self.field(name)).filter(|value| !value.is_empty());
        Order {
            all: self.is_empty(),
            crawl: field("crawl"),
            spider: field("spider"),
            urls: field("url").into_iter().collect(),
            reason: field("reason"),
            host: field("host"),
            older_than: field("older_than"),
            cursor,
        }
    }

    /// The selection in words.
    pub(crate) fn words(&self) -> String {
        let word = |(name, value): (&str, &str)| match name {
            "older_than" => format!("older than {value}"),
            name => format!("{name} {value}"),
        };
        let words: Vec<_> = self.fields().into_iter().map(word).collect();
        if words.is_empty() { "all crawls".to_owned() } else { words.join(", ") }
    }
}

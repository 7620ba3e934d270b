//! Which dead letters are meant: what a filter's form says, and what the API is asked for.

use serde::{Deserialize, Serialize};

use crate::address::address;
use crate::ask::Call;
use crate::form::written;
use crate::shown::Text;

/// A filter. What is empty leaves all in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Selection {
    pub(crate) crawl: Option<String>,
    pub(crate) spider: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) older_than: Option<String>,
}

/// The same for the API, where it does something.
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
    /// Its fields that say something.
    pub(crate) fn fields(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("crawl", &self.crawl),
            ("spider", &self.spider),
            ("url", &self.url),
            ("reason", &self.reason),
            ("host", &self.host),
            ("older_than", &self.older_than),
        ];
        // A text that is no URL may begin with a space: it is meant as it is.
        let said = |(name, field): (&'static str, _)| match name {
            "url" => Some((name, self.url.as_deref().filter(|url| !url.is_empty())?)),
            _ => Some((name, written(field)?)),
        };
        all.into_iter().filter_map(said).collect()
    }

    /// What one of its fields says.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields().into_iter().find(|(field, _)| *field == name).map_or("", |(_, value)| value)
    }

    /// The same as its input shows it.
    pub(crate) fn shown(&self, name: &str) -> Text {
        self.field(name).into()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields().is_empty()
    }

    /// A page about it.
    pub(crate) fn path(&self, page: &str) -> String {
        self.path_with(page, &[])
    }

    /// The same with more that it says.
    pub(crate) fn path_with(&self, page: &str, more: &[(&str, &str)]) -> String {
        address(page, self.fields().into_iter().chain(more.iter().copied()))
    }

    /// The call that lists what is meant.
    pub(crate) fn call(&self) -> Call {
        self.call_for(&["dead-letters"])
    }

    /// The call that looks at what is meant in another way.
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

    /// What is meant, in words.
    pub(crate) fn words(&self) -> String {
        let word = |(name, value): (&str, &str)| match name {
            "older_than" => format!("older than {value}"),
            name => format!("{name} {value}"),
        };
        let words: Vec<_> = self.fields().into_iter().map(word).collect();
        if words.is_empty() { "all crawls".to_owned() } else { words.join(", ") }
    }
}

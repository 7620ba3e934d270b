//! A spider's fields, read once and ready to look for.

use serde_json::Value;
use trawl_common::spider::{Kind, PageField, Required};

use super::follow::Follow;
use super::json::Path;
use super::kind::Convert;
use super::query::Query;

/// What a spider asks of each page.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) rules: Vec<Rule>,
    pub(crate) follow: Option<Follow>,
    /// Whether something needs a tree.
    pub(crate) needs_tree: bool,
    /// Whether something is looked for in JSON.
    pub(crate) reads_json: bool,
}

/// One kind of item.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) name: Option<String>,
    pub(crate) each: Option<Each>,
    pub(crate) fields: Vec<Field>,
}

/// What there is one object of for each match.
#[derive(Debug)]
pub(crate) enum Each {
    Tree(Query),
    Json(Path),
}

/// One field.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// Its name with those of what it lies in: `offers.price`.
    pub(crate) path: String,
    pub(crate) source: Source,
    pub(crate) list: bool,
    pub(crate) convert: Convert,
    pub(crate) default: Option<Value>,
    pub(crate) required: Required,
}

/// Where a field's values come from.
#[derive(Debug)]
pub(crate) enum Source {
    Tree(Query),
    /// The number of a query of the streaming pass.
    Streamed(usize),
    Json(Path),
    Header(String),
    /// The number of a name that the streaming pass looks for.
    Meta(usize),
    /// The number of a type of JSON-LD.
    JsonLd(usize, Option<Path>),
    Microdata(String, Option<Path>),
    Table(Query),
    Page(PageField),
    Each(Each, Vec<Field>),
}

/// What a response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Html,
    Json,
}

impl Source {
    /// What it can be looked for in; both, where that is open.
    pub(crate) fn format(&self) -> Option<Format> {
        match self {
            Self::Header(_) | Self::Page(PageField::Url) => None,
            Self::Json(_) | Self::Each(Each::Json(_), _) => Some(Format::Json),
            _ => Some(Format::Html),
        }
    }
}

impl Rule {
    /// Whether there are such items in a response: not if all that they ask for is in the other format.
    pub(crate) fn is_for(&self, format: Format) -> bool {
        match &self.each {
            Some(Each::Tree(_)) => format == Format::Html,
            Some(Each::Json(_)) => format == Format::Json,
            None => {
                let mut formats = self.fields.iter().filter_map(|field| field.source.format()).peekable();
                formats.peek().is_none() || formats.any(|other| other == format)
            }
        }
    }
}

/// Whether the lists that are found in JSON are so many values, and not one.
pub(crate) fn splits(kind: Kind) -> bool {
    kind != Kind::Json
}

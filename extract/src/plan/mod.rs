//! A spider's fields, read once and ready to look for.

pub(crate) mod planner;
pub(crate) mod query;
pub(crate) mod selector_syntax;
pub(crate) mod streamable;

use scraper::Selector;
use serde_json::Value;
use trawl_common::spider::{Kind, PageField, Required};

use crate::document::json::Path;
use crate::plan::query::Query;
use crate::values::convert::Convert;

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

/// What `[follow]` says of pages.
#[derive(Debug)]
pub(crate) struct Follow {
    pub(crate) area: Option<Query>,
    pub(crate) next: Vec<Next>,
    /// Elements with links: for an area.
    pub(crate) link: Selector,
    pub(crate) links: bool,
    pub(crate) nofollow: bool,
    pub(crate) noindex: bool,
    pub(crate) canonical: bool,
    pub(crate) refresh: bool,
}

/// What is followed besides the links of a page.
#[derive(Debug)]
pub(crate) enum Next {
    Tree(Query),
    /// The number of a query of the streaming pass.
    Streamed(usize),
    Json(Path),
}

impl Follow {
    /// A [`Follow`] without selectors yet.
    pub(crate) fn new(follow: &trawl_common::spider::Follow) -> Self {
        Self {
            area: None,
            next: Vec::new(),
            link: Selector::parse("a[href], area[href]").expect("a constant selector"),
            links: follow.links,
            nofollow: follow.nofollow,
            noindex: follow.noindex,
            canonical: follow.canonical,
            refresh: follow.refresh,
        }
    }
}

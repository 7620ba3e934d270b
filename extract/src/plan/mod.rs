//! A spider's fields, compiled for extraction.

mod pages;
pub(crate) mod paginate;
pub(crate) mod planner;
pub(crate) mod query;
pub(crate) mod selector_syntax;
pub(crate) mod streamable;

use std::sync::Arc;

use regex::RegexSet;
use scraper::Selector;
use serde_json::Value;
use trawl_common::names::SpiderName;
use trawl_common::request::RequestTemplate;
use trawl_common::spider::{Kind, PageField, PageStep, Render, Required, TaskTemplate};

use crate::document::elements::SelectorMap;
use crate::document::json::Path;
use crate::jmespath::JmesPath;
use crate::plan::paginate::Paginate;
use crate::plan::query::Query;
use crate::values::convert::Convert;
use crate::values::transform::Transform;

/// The compiled fields and links that a spider extracts from each page.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) rules: Vec<Rule>,
    /// The kinds of pages.
    pub(crate) pages: Vec<PageKind>,
    /// The further pages of lists.
    pub(crate) paginate: Vec<Paginate>,
    /// The files to keep.
    pub(crate) downloads: Vec<Download>,
    /// The links and tasks that are handed to other spiders.
    pub(crate) hand_overs: Vec<HandOver>,
    /// Whether links say which kinds of pages led to them.
    pub(crate) tracks: bool,
    /// Whether pages are rendered whose kind does not say it.
    pub(crate) render: Render,
    /// The steps in rendered pages whose kind has none of its own.
    pub(crate) steps: Arc<[PageStep]>,
    pub(crate) follow: Option<Follow>,
    /// The uses of its items: a page that reserves one of these has none.
    pub(crate) used_for: Vec<String>,
    /// Finds something in a page that shows that the session has lapsed.
    pub(crate) lapsed: Option<Each>,
    /// The selectors that are looked for in whole pages.
    pub(crate) selectors: SelectorMap,
    /// Whether any field or link needs a tree.
    pub(crate) needs_tree: bool,
    /// Whether anything is extracted from JSON.
    pub(crate) reads_json: bool,
}

/// One type of item.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) name: Option<String>,
    pub(crate) each: Option<Each>,
    pub(crate) fields: Vec<Field>,
    /// The number of the kind of page that has them.
    pub(crate) page: Option<usize>,
}

/// The matches that an object is made for, one each.
#[derive(Debug)]
pub(crate) enum Each {
    Tree(Query),
    Json(Path),
    /// The index of a name of scripts, and the path in each of their values.
    Script(usize, Option<Path>),
}

/// One field of an item.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// The name, prefixed with those of the fields around it: `offers.price`.
    pub(crate) path: String,
    pub(crate) source: Source,
    pub(crate) list: bool,
    pub(crate) transform: Transform,
    pub(crate) convert: Convert,
    pub(crate) default: Option<Value>,
    pub(crate) required: Required,
}

/// The source of a field's values.
#[derive(Debug)]
pub(crate) enum Source {
    Tree(Query),
    /// Index of a query of the streaming pass.
    Streamed(usize),
    Json(Path),
    JmesPath(JmesPath),
    /// The index of a name of scripts.
    Script(usize, Option<Path>),
    Header(String),
    /// Index of a `<meta>` name that the streaming pass looks for.
    Meta(usize),
    /// Index of a JSON-LD type.
    JsonLd(usize, Option<Path>),
    Microdata(String, Option<Path>),
    Table(Query),
    Page(PageField),
    Carried(String),
    Each(Each, Vec<Field>),
}

/// The format of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Html,
    Json,
}

impl Source {
    /// Returns the format of the responses that have this source, or `None` for both.
    pub(crate) fn format(&self) -> Option<Format> {
        match self {
            Self::Header(_) | Self::Carried(_) | Self::Page(PageField::Url | PageField::Usage) => None,
            Self::Json(_) | Self::JmesPath(_) | Self::Each(Each::Json(_), _) => Some(Format::Json),
            _ => Some(Format::Html),
        }
    }
}

impl Rule {
    /// Whether a response of this format can have such items: at least one field must be for it, or none for a
    /// particular format.
    pub(crate) fn is_for(&self, format: Format) -> bool {
        match &self.each {
            Some(Each::Tree(_) | Each::Script(..)) => format == Format::Html,
            Some(Each::Json(_)) => format == Format::Json,
            None => {
                let mut formats = self.fields.iter().filter_map(|field| field.source.format()).peekable();
                formats.peek().is_none() || formats.any(|other| other == format)
            }
        }
    }
}

/// Whether a list found in JSON is split into several values.
pub(crate) fn splits(kind: Kind) -> bool {
    kind != Kind::Json
}

/// The `[follow]` settings of a spider.
#[derive(Debug)]
pub(crate) struct Follow {
    pub(crate) area: Option<Query>,
    pub(crate) next: Vec<Next>,
    /// Elements with links within an area.
    pub(crate) link: Selector,
    pub(crate) links: bool,
    pub(crate) nofollow: bool,
    pub(crate) noindex: bool,
    pub(crate) canonical: bool,
    pub(crate) refresh: bool,
}

/// A source of links to follow besides the page's `<a>` elements.
#[derive(Debug)]
pub(crate) enum Next {
    Tree(Query),
    /// Index of a query of the streaming pass.
    Streamed(usize),
    Json(Path),
    /// The index of a name of scripts.
    Script(usize, Option<Path>),
}

/// A kind of page.
#[derive(Debug)]
pub(crate) struct PageKind {
    pub(crate) name: String,
    pub(crate) url: RegexSet,
    pub(crate) content_type: Vec<String>,
    pub(crate) from: Vec<String>,
    pub(crate) selector: Option<Each>,
    pub(crate) follow: Option<Vec<LinkRule>>,
    pub(crate) carry: Vec<Field>,
    pub(crate) render: Option<Render>,
    pub(crate) steps: Option<Arc<[PageStep]>>,
}

/// A rule for the links of a kind of page.
#[derive(Debug)]
pub(crate) struct LinkRule {
    pub(crate) name: Option<String>,
    pub(crate) each: Option<Each>,
    pub(crate) link: Vec<Next>,
    pub(crate) area: Option<Query>,
    pub(crate) include: RegexSet,
    pub(crate) exclude: RegexSet,
    pub(crate) carry: Vec<Field>,
    pub(crate) request: Option<RequestTemplate>,
    pub(crate) form: Option<Form>,
}

/// A rule for files.
#[derive(Debug)]
pub(crate) struct Download {
    pub(crate) on: OnKinds,
    pub(crate) links: LinkRule,
}

/// A rule for links and tasks that are handed to a spider.
#[derive(Debug)]
pub(crate) struct HandOver {
    pub(crate) spider: SpiderName,
    pub(crate) on: OnKinds,
    pub(crate) links: LinkRule,
    /// In place of links, a task.
    pub(crate) task: Option<TaskTemplate>,
}

/// The numbers of the kinds of pages on which a rule looks; all pages if empty.
#[derive(Debug)]
pub(crate) struct OnKinds(pub(crate) Vec<usize>);

impl OnKinds {
    /// Whether the rule looks on pages of this kind.
    pub(crate) fn has(&self, kind: Option<usize>) -> bool {
        self.0.is_empty() || kind.is_some_and(|kind| self.0.contains(&kind))
    }
}

/// A form that is sent.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) selector: String,
    pub(crate) query: Query,
    pub(crate) fill: Value,
}

impl Follow {
    /// Creates a [`Follow`] without selectors.
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

//! `[[page]]`: the kinds of pages of a spider, and the links that each is read for.

use std::sync::Arc;

use serde_json::Value;

use super::{Field, PageStep, Render, Selector};
use crate::mistake::Sited;
use crate::request::RequestTemplate;

/// A kind of page. The first kind of the file that matches a page reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct PageKind {
    /// Its name, which its items have too if they have no other.
    pub name: Sited<String>,
    /// The conditions that a page must meet.
    pub when: PageMatch,
    /// The rules for its links; `None` if its links are followed by `[follow]`. A link that several rules find belongs
    /// to the first.
    pub follow: Option<Vec<PageFollow>>,
    /// The values that are passed on to the pages that it leads to.
    pub carry: Vec<(String, Field)>,
    /// Whether a browser renders its pages; `None` if the spider says so.
    pub render: Option<Render>,
    /// The steps in its pages; `None` for those of the spider.
    pub steps: Option<Arc<[PageStep]>>,
}

/// `match`: conditions for a page, all of which must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageMatch {
    /// Regular expressions, one of which must match its URL.
    pub url: Vec<Sited<String>>,
    /// Media types, one of which its response must have: `text/html`, or `application/*`.
    pub content_type: Vec<String>,
    /// A selector that must match an element, or a path that must lead to a value in JSON.
    pub selector: Option<Selector>,
    /// The names of kinds or follow rules, one of which must have led to the page.
    pub from: Vec<Sited<String>>,
}

impl PageMatch {
    /// Whether every page meets it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// `[[page.follow]]`: a rule for links.
#[derive(Clone, Debug, PartialEq)]
pub struct PageFollow {
    /// A name for `from` of other kinds.
    pub name: Option<Sited<String>>,
    /// A selector of elements, or a path to values of JSON, each with links and values of its own.
    pub each: Option<Selector>,
    /// Selectors or paths of URLs; if empty, all links.
    pub link: Vec<Selector>,
    /// A selector: only links inside the elements that it matches are followed.
    pub area: Option<Selector>,
    /// Regular expressions: a URL is followed if it matches one of them; any URL if there are none.
    pub include: Vec<Sited<String>>,
    /// Regular expressions: a URL that matches one of them is not followed.
    pub exclude: Vec<Sited<String>>,
    /// The values that are passed on to the pages that its links lead to.
    pub carry: Vec<(String, Field)>,
    /// The way in which its links are requested; with a URL, a request in place of links. `None` for a plain GET.
    pub request: Option<RequestTemplate>,
    /// In place of links, the form that is sent.
    pub form: Option<PageForm>,
}

impl PageFollow {
    /// Whether it makes a request of its own in place of links.
    pub fn makes_request(&self) -> bool {
        self.request.as_ref().is_some_and(|request| request.has("url"))
    }
}

/// `form` and `fill`: a form of the page that is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct PageForm {
    /// A selector of the form.
    pub form: Selector,
    /// An object: the values of controls by name, with placeholders for carried values; null leaves a control out.
    pub fill: Value,
}

//! `[[paginate]]`: how the further pages of a list are reached.

use std::num::NonZeroU32;

use super::{Field, Selector};
use crate::mistake::Sited;

/// The further pages of lists. Each page leads to the next one, until the list ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Paginate {
    /// The kinds of pages that are lists; all pages if empty.
    pub page: Vec<Sited<String>>,
    /// The way to the next page.
    pub by: PaginateBy,
    /// A selector or path of the entries of a page: a page without one is empty. Without it, a page without items and
    /// links is.
    pub entries: Option<Selector>,
    /// Maximum number of pages of one list.
    pub most: NonZeroU32,
}

/// The way to the next page of a list.
#[derive(Clone, Debug, PartialEq)]
pub enum PaginateBy {
    /// `next`: the URL that a selector finds in the page, or a path in JSON.
    Next(Selector),
    /// `next = { header = "next" }`: the target of the header field `Link` with this relation (RFC 8288).
    Link(String),
    /// `number` and `offset`: this parameter, which is `first` on a page without it, plus `step`.
    Count {
        /// The parameter.
        to: Parameter,
        /// The value on the first page.
        first: u64,
        /// The difference between two pages.
        step: NonZeroU32,
    },
    /// `cursor`: this parameter with the value of a field.
    Cursor {
        /// The parameter.
        to: Parameter,
        /// The field.
        from: Box<Field>,
    },
}

/// A parameter of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// One of the form that a request sends, or else of the query of its URL.
    Named(String),
    /// The value at this JSON Pointer of the body.
    Json(String),
}

impl Paginate {
    /// The maximum number of pages of a list unless the file sets one.
    pub(crate) const DEFAULT_MAX_PAGES: NonZeroU32 = NonZeroU32::new(1_000).expect("a constant above 0");
}

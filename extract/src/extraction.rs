//! What a page gives: items, links to follow, and what is missing.

use serde_json::{Map, Value};
use trawl_common::spider::Required;
use trawl_common::web::url::CanonicalUrl;

/// What a page gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extraction {
    /// Its items.
    pub items: Vec<Extracted>,
    /// The links to follow as far as the page and `[follow]` have a say, absolute, each once: where a refresh
    /// leads, what `next` finds, then the others in page order. Which of them are within the spider's scope is
    /// not looked at here.
    pub links: Vec<Link>,
    /// The page that this one names as canonical, if that is another and the spider goes by it.
    pub canonical: Option<CanonicalUrl>,
    /// How many more links the page has than are followed of one.
    pub left_out: u64,
    /// The required fields that were not found, each once.
    pub missing: Vec<Missing>,
    /// The fields of which a value was found that is not kept as it is, each once.
    pub unfit: Vec<Unfit>,
}

/// A value that a field does not keep as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The field's name, with those of what it lies in: `offers.price`.
    pub field: String,
    /// The beginning of the value.
    pub value: String,
    /// Why it is not kept: `it has no digit`.
    pub reason: &'static str,
    /// Whether there is a value nevertheless: a part of it.
    pub is_cut: bool,
}

/// A required field that was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its name, with those of what it lies in: `offers.price`.
    pub field: String,
    /// What the page is without it.
    pub required: Required,
}

/// A link to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where it leads.
    pub url: CanonicalUrl,
    /// The spelling in which the page has it, if that is another.
    pub written: Option<CanonicalUrl>,
    /// Whether `next` found it: what it leads to is as deep as the page.
    pub is_next: bool,
}

/// One item.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extracted {
    /// The name of its kind.
    pub rule: Option<String>,
    /// How many of its kind come before it on the page.
    pub number: usize,
    /// Its fields.
    pub fields: Map<String, Value>,
}

//! Extracts the items and links of a spider from a response. No I/O.
//!
//! One page, from top to bottom:
//!
//! 1. [`Extractor::new`] makes a `plan` of the spider: which fields one streaming pass can answer, and which need a
//!    tree;
//! 2. [`Extractor::extract`] reads the response with `document`: its encoding, JSON, the streaming pass, the tree;
//! 3. `items` and `follow` find the planned values in the `context` of that page, each `field` separately;
//! 4. `values` converts each found value to the field's type, within the field's `budget`.

mod context;
mod document;
mod examined;
mod extraction;
mod extractor;
mod field;
mod file;
mod follow;
mod form;
mod items;
mod jmespath;
mod language;
mod limits;
mod list;
mod login;
mod pages;
mod plan;
mod ready;
mod rendering;
mod shell;
mod summary;
mod summary_of_pages;
#[cfg(test)]
mod tests;
mod text;
mod tried;
mod usage;
mod values;
mod xpath;

pub use self::examined::{Examined, Robots};
pub use self::extraction::{
    Extracted, Extraction, ItemPage, Link, LinkKind, ListEnd, ListState, Missing, Unfit, Unmet,
};
pub use self::extractor::Extractor;
pub use self::file::{FileType, SNIFFED, image_size};
pub use self::limits::{MAX_PAGE_TEXT, MAX_TEXT};
pub use self::login::{LoginPlan, PlannedStep, StepReader, StepResult};
pub use self::ready::Ready;
pub use self::rendering::{RenderRule, Rendering};
pub use self::text::text;
pub use self::tried::{Attempt, JudgedKind, JudgedLink, NotTried, RobotsOutcome, Tried, Untried};

//! From a response to the items and links that a spider asks for. No I/O.
//!
//! One page, from top to bottom:
//!
//! 1. [`Extractor::new`] makes a `plan` of the spider: which fields one streaming pass can answer, and which need a tree;
//! 2. [`Extractor::extract`] reads the response with `document`: its encoding, JSON, the streaming pass, the tree;
//! 3. `items` and `follow` find what the plan asks for in the `context` of that page, each `field` by itself;
//! 4. `values` makes of what was found a value of the field's kind, within the field's `budget`.

mod context;
mod document;
mod examined;
mod extraction;
mod extractor;
mod field;
mod follow;
mod items;
mod limits;
mod plan;
mod ready;
mod summary;
#[cfg(test)]
mod tests;
mod text;
mod tried;
mod values;

pub use self::examined::{Examined, Robots};
pub use self::extraction::{Extracted, Extraction, Link, Missing, Unfit};
pub use self::extractor::Extractor;
pub use self::limits::{MAX_PAGE_TEXT, MAX_TEXT};
pub use self::ready::Ready;
pub use self::text::text;
pub use self::tried::{Attempt, NotTried, RobotsOutcome, Tried, Untried};

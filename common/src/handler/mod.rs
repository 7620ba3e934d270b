//! Handlers: programs of a spider's own that do its tasks and read its pages. The protocol, without running anything; for people it
//! is written down in `docs/handlers.md`.
//!
//! Whatever the mode, a handler says all that it has to say in JSON objects of one form ([`Part`]). With [`once`] the last object on
//! standard output is the whole answer. With [`stream`] each line is a part of the answer to one request, and the part with
//! `result` ends it.

mod answer;
mod log;
pub mod once;
mod part;
pub mod stream;
mod weight;

pub use answer::{Answer, Verdict};
pub use log::LogLine;
pub use part::{InvalidItem, InvalidPart, MAX_ITEM_BYTES, NotJson, Part, item_from_json};
pub use weight::TooManyValues;

/// How many bytes a handler may say in answer to one task or page: on standard output with `once`, in all parts of an answer with
/// `stream`.
pub const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// How many entries an answer may add to the log; further ones are dropped.
pub const MAX_LOGS: usize = 1000;

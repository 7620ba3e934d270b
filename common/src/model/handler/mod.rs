//! Handlers: a spider's own programs that do its tasks and read its pages. This is the protocol, without running
//! anything; it is documented for users in `docs/handlers.md`.
//!
//! In either mode, a handler answers in JSON objects of one form ([`Part`]). With [`once`] the last object on
//! standard output is the whole answer. With [`stream`] each line is a part of the answer to one request, and the
//! part with `result` ends it.

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

/// Maximum size of a handler's answer to one task or page, in bytes: on standard output with `once`, in all parts
/// of an answer with `stream`.
pub const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// Maximum number of log entries in an answer; further ones are dropped.
pub const MAX_LOGS: usize = 1000;

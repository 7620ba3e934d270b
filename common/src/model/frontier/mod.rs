//! The life of a URL or a task in a crawl: each transition of `docs/states.md`, written once in Rust and once in
//! Lua.
//!
//! Nothing here has a clock or a store. The embedded engine reads a state, calls a transition and writes the
//! changes. Redis runs the Lua scripts, where a call is one round trip; a test makes the same calls to the scripts
//! and to these functions, and compares the records after each.

mod answer;
mod context;
pub mod crawl;
pub mod dead_letter;
mod dedup_scope;
mod end;
pub mod judging;
mod key;
pub mod ladder;
pub mod lane;
pub mod limit;
pub mod message;
pub mod notes;
pub mod outcome;
mod period;
pub mod quality;
mod record;
mod recrawl;
mod request;
pub mod retry;
pub mod route;
pub mod source_queue;
#[cfg(test)]
mod tests;
pub mod trace;
mod transitions;
pub mod unmet;
mod work;

pub use answer::{ClaimReply, MAX_STARTS, SUSPECT_STARTS, StartReply, Taken, is_suspect};
pub use context::{Context, PagesLeft, Watermark};
pub use dedup_scope::{DedupScope, UnknownDedupScope};
pub use end::{End, Finished};
pub use key::{InvalidRequestKey, InvalidTaskKey, Key, RequestKey, TaskKey, fingerprint};
pub use period::{InvalidPeriod, Period};
pub use record::{Record, State, UrlState};
pub use recrawl::{Recrawl, UnknownRecrawl};
pub use request::Request;
pub use work::{Task, Work};

//! The vocabulary: names, URLs, times and texts; the life of a URL in a crawl; requests, tasks, and what programs of
//! spiders say; events and log entries. Nothing here does any I/O.

pub(crate) mod as_text;
pub(crate) mod base64;
pub mod cell;
pub mod clock;
pub mod csv;
pub mod duration;
pub(crate) mod escape;
pub mod events;
pub mod finding;
pub mod format;
pub mod frontier;
pub mod handler;
pub mod history;
pub mod json_object;
pub mod list;
pub mod logs;
pub mod mistake;
pub mod names;
pub mod nearest;
pub mod priority;
pub mod project;
pub(crate) mod recorded;
pub mod request;
pub mod session;
pub(crate) mod small_file;
pub mod task;
pub mod text;
pub mod time;
pub(crate) mod toml_value;
pub mod web;

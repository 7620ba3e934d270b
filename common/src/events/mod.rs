//! Events: what happened to a crawl, for programs that listen to the exchange `events`.

mod crawl;
mod pattern;

pub use crawl::{CrawlEvent, EventKind};
pub use pattern::{NoPattern, Pattern};

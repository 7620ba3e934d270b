//! Start-up, signals, user-facing errors, numbers and progress, shared by trawl's three programs.

mod arguments;
mod colour;
mod crawl;
mod crawl_flags;
mod dead_letters;
mod ending;
mod fail;
mod json;
pub mod metrics;
pub mod mistakes;
mod progress;
mod signals;
mod spider;
mod start;
mod summary;
pub mod trace;
mod version;
mod waits;

pub use arguments::ArgumentFlags;
pub use crawl::CrawlArg;
pub use crawl_flags::{DedupFlags, EndFlags, Ended};
pub use dead_letters::DeadLetters;
pub use ending::await_end;
pub use fail::{Fail, Outcome};
pub use json::print_json;
pub use progress::Progress;
pub use signals::Signals;
pub use spider::{SpiderArg, unusable};
pub use start::{Global, main};
pub use summary::{items, pages_per_second, progress, summary, time_left};
pub use trawl_common::text::{count, counted};
pub use version::version;
pub use waits::Waits;

//! Start-up, signals, user-facing errors, numbers and progress, shared by trawl's three programs.

mod arguments;
mod colour;
mod crawl;
mod crawl_flags;
mod ending;
mod fail;
mod json;
pub mod metrics;
pub mod mistakes;
mod progress;
mod signals;
mod spider;
mod start;
pub mod trace;

pub use arguments::ArgumentFlags;
pub use crawl::CrawlArg;
pub use crawl_flags::{DedupFlags, EndFlags};
pub use ending::await_end;
pub use fail::{Fail, Outcome};
pub use json::print_json;
pub use progress::Progress;
pub use signals::Signals;
pub use spider::{SpiderArg, unusable};
pub use start::{Global, main};
pub use trawl_common::text::{count, counted};

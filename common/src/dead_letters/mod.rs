//! Dead letters as people handle them: selected, listed by page, replayed, purged.

mod failed;
mod filter;
mod page;
mod replay;

pub use failed::Failed;
pub use filter::Filter;
pub use page::{Page, named, page, purge};
pub use replay::Replay;

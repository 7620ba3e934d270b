//! Dead letters for people: selecting, listing by page, replaying, purging.

mod failed;
mod filter;
mod page;
mod replay;

pub use failed::Failed;
pub use filter::Filter;
pub use page::{Page, named, page, purge};
pub use replay::Replay;

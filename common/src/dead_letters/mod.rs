//! Dead letters as people handle them: which are meant, looked through a page at a time, sent again.

mod filter;
mod page;
mod replay;

pub use filter::Filter;
pub use page::{Failed, Page, named, page, purge};
pub use replay::Replay;

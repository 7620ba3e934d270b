//! The entries for pages in the permanent history (`[history]`, [`History`](crate::ports::History)). What a spider
//! remembers of a page between crawls is another: `page_history` in [`spider`](crate::spider).

use crate::frontier::Key;
use crate::frontier::outcome::Terminal;
use crate::names::{CrawlRef, WorkerId};
use crate::time::UnixMs;

/// The end of a page or a task in a crawl.
#[derive(Clone, Debug, PartialEq)]
pub struct PageEnd {
    /// The crawl.
    pub crawl: CrawlRef,
    /// The key of the page or task.
    pub key: Key,
    /// Its final state.
    pub terminal: Terminal,
    /// The reason for a state other than done, in one word: `robots`, `timeout`.
    pub reason: Option<&'static str>,
    /// The status of the last answer, if known.
    pub status: Option<u16>,
    /// Number of attempts.
    pub attempts: u32,
    /// The time of its end.
    pub ended: UnixMs,
    /// The worker that ended it.
    pub worker: WorkerId,
    /// Number of items that it gave.
    pub items: u64,
    /// Size of its body in bytes.
    pub bytes: u64,
}

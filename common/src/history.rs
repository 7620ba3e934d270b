//! What a history keeps of pages.

use crate::frontier::Key;
use crate::frontier::outcome::Terminal;
use crate::names::{CrawlRef, WorkerId};
use crate::time::UnixMs;

/// How a page or a task ended in a crawl.
#[derive(Clone, Debug, PartialEq)]
pub struct PageEnd {
    /// In which crawl.
    pub crawl: CrawlRef,
    /// Which.
    pub key: Key,
    /// Its final state.
    pub terminal: Terminal,
    /// Why it has that, in a word, if it is not done: `robots`, `timeout`.
    pub reason: Option<&'static str>,
    /// The status of the last answer, where it is known.
    pub status: Option<u16>,
    /// How often it was tried.
    pub attempts: u32,
    /// When it ended.
    pub ended: UnixMs,
    /// By whom.
    pub worker: WorkerId,
    /// How many items it gave.
    pub items: u64,
    /// How many bytes its body had.
    pub bytes: u64,
}

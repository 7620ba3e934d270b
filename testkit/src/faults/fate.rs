//! The answers of pages, and the maximum time until they come.

use std::time::Duration;

/// The answer of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A page.
    Good,
    /// 404.
    Missing,
    /// 500 for this number of times, then a page.
    Flaky(usize),
    /// 500.
    Broken,
    /// No answer.
    Silent,
    /// A redirect to the page of this number.
    Redirect(usize),
}

/// Maximum delay of a request beyond the pace.
pub const HELD_BACK: Duration = Duration::from_secs(4);
/// Maximum delay of a request beyond the pace while the crawl catches up, less than makes a domain slow.
pub const CATCHING_UP: Duration = Duration::from_millis(500);
/// Time after which clients give up a request.
pub const TIMEOUT: Duration = Duration::from_secs(8);

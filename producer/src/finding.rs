//! The entries that sources yield.

use std::time::Duration;

use trawl_common::ports::NewWork;
use trawl_common::time::UnixMs;

/// One entry of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A URL, a request or a task.
    Page(Candidate),
    /// Text that is not a URL.
    Invalid {
        /// The text, printable.
        text: String,
        /// The defect.
        reason: String,
    },
}

/// A URL, a request or a task to admit, if it is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The URL or the request, routed; or the task.
    pub page: NewWork,
    /// The time that it may wait, from when it is admitted; `None` for no limit.
    pub ttl: Option<Duration>,
    /// The latest time at which it changed, if its source says so.
    pub modified: Option<UnixMs>,
}

//! What sources give.

use std::time::Duration;

use trawl_common::ports::NewWork;
use trawl_common::time::UnixMs;

/// One entry of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A URL, a request or a task.
    Page(Candidate),
    /// Something that is no URL.
    Invalid {
        /// What stands there, printable.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// A URL, a request or a task to admit, unless it is not due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The URL or the request, routed; or the task.
    pub page: NewWork,
    /// How long it may live.
    pub ttl: Option<Duration>,
    /// When it changed at the latest, if its source says so.
    pub modified: Option<UnixMs>,
}

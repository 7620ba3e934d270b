//! The end of a record.

use crate::frontier::outcome::{Skip, Terminal};

/// The end of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The counter that it adds to.
    pub terminal: Terminal,
    /// The reason in one word, for the stats.
    pub why: Option<&'static str>,
    /// Whether later crawls of the spider leave it out. They may find again a URL that was not even requested.
    pub stays_seen: bool,
}

/// The result of a call that ends a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// This call ends it.
    Now(End),
    /// It had ended before.
    Before,
    /// This worker no longer holds it, or the store has forgotten it.
    NotHeld,
}

impl End {
    /// Returns the end that a worker or a command names.
    pub fn new(terminal: Terminal, why: Option<&'static str>) -> Self {
        let is_untried = why == Some(Skip::Limit.as_str()) || why == Some(Skip::Blocked.as_str());
        let is_dropped = matches!(terminal, Terminal::Expired | Terminal::Cancelled);
        Self { terminal, why, stays_seen: !is_untried && !is_dropped }
    }

    /// Returns the end of a page that was fetched beyond the limit: it counts as skipped, but its items are
    /// stored, so no crawl is to fetch it again.
    pub(super) fn beyond_limit() -> Self {
        Self { terminal: Terminal::Skipped, why: Some(Skip::Limit.as_str()), stays_seen: true }
    }

    /// Returns whether it joins the crawl's list of dead letters, from which people may replay it.
    pub fn is_listed(&self) -> bool {
        matches!(self.terminal, Terminal::Failed | Terminal::Expired)
            || self.why == Some(Skip::Blocked.as_str())
    }
}

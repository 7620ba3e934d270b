//! How a record ends.

use crate::frontier::outcome::{Skip, Terminal};

/// The end of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Which counter it adds to.
    pub terminal: Terminal,
    /// The reason in a word, for the stats.
    pub why: Option<&'static str>,
    /// Whether later crawls of the spider leave it out. What was not even asked for they may find again.
    pub stays_seen: bool,
}

/// What comes of a call that ends a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// It ends by this call.
    Now(End),
    /// It has ended before.
    Before,
    /// It is no longer this worker's, or the store has forgotten it.
    NotHeld,
}

impl End {
    /// The end that a worker or a command names.
    pub fn of(terminal: Terminal, why: Option<&'static str>) -> Self {
        let is_untried = why == Some(Skip::Limit.as_str()) || why == Some(Skip::Blocked.as_str());
        let is_dropped = matches!(terminal, Terminal::Expired | Terminal::Cancelled);
        Self { terminal, why, stays_seen: !is_untried && !is_dropped }
    }

    /// The end of a page that was fetched beyond the limit: it counts as skipped, but its items are stored, so no crawl is to
    /// fetch it again.
    pub(super) fn beyond_limit() -> Self {
        Self { terminal: Terminal::Skipped, why: Some(Skip::Limit.as_str()), stays_seen: true }
    }

    /// Whether it joins the crawl's list of dead letters, from which people may replay it.
    pub fn is_listed(&self) -> bool {
        matches!(self.terminal, Terminal::Failed | Terminal::Expired)
            || self.why == Some(Skip::Blocked.as_str())
    }
}

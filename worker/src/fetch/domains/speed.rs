//! How fast domains are, by the pages that they answered.

use std::time::Duration;

use tokio::time::Instant;

/// A page that takes longer is slow.
pub(crate) const SLOW: Duration = Duration::from_secs(1);

/// A domain counts as slow for so long after its last slow page.
pub(super) const REMEMBERED: Duration = Duration::from_secs(60);

/// How fast a domain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Speed {
    /// How long its last page took, or has taken so far.
    took: Duration,
    /// Whether it has answered a page.
    has_answered: bool,
    at: Instant,
}

impl Speed {
    /// Of a domain that has answered a page after this time. One that was slow is quick again as soon as it answers quickly.
    pub(super) fn answered(took: Duration) -> Self {
        Self { took, has_answered: true, at: Instant::now() }
    }

    /// Of a domain of which a page is slow.
    pub(super) fn slowed(before: Option<Self>) -> Self {
        let has_answered = before.is_some_and(|before| before.has_answered);
        Self { took: SLOW, has_answered, at: Instant::now() }
    }

    pub(super) fn is_quick(self) -> bool {
        self.has_answered && self.took < SLOW
    }

    /// Whether it is slow, and has not answered so far.
    pub(super) fn is_silent(self) -> bool {
        !self.has_answered
    }

    /// Whether its last slow page is so long ago that nothing is known of it any more.
    pub(super) fn is_forgotten(self) -> bool {
        !self.is_quick() && self.at.elapsed() > REMEMBERED
    }

    /// How long a page of it takes.
    pub(super) fn took(self) -> Duration {
        self.took
    }
}

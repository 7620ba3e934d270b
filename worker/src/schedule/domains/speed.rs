//! How fast domains are, by the pages that they answered.

use std::time::Duration;

use tokio::time::Instant;

/// A page that takes longer is slow.
pub(crate) const SLOW_PAGE: Duration = Duration::from_secs(1);

/// The time for which a domain counts as slow after its last slow page.
pub(super) const SLOW_TTL: Duration = Duration::from_secs(60);

/// The speed of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Speed {
    /// The time that its last page took, or has taken so far.
    took: Duration,
    /// Whether it has answered a page.
    has_answered: bool,
    at: Instant,
}

impl Speed {
    /// Returns the speed of a domain that has answered a page after this time. A slow domain is quick again with its
    /// first quick answer.
    pub(super) fn answered(took: Duration) -> Self {
        Self { took, has_answered: true, at: Instant::now() }
    }

    /// Returns the speed of a domain with a slow page.
    pub(super) fn slowed(before: Option<Self>) -> Self {
        let has_answered = before.is_some_and(|before| before.has_answered);
        Self { took: SLOW_PAGE, has_answered, at: Instant::now() }
    }

    pub(super) fn is_quick(self) -> bool {
        self.has_answered && self.took < SLOW_PAGE
    }

    /// Whether it is slow and has never answered.
    pub(super) fn is_silent(self) -> bool {
        !self.has_answered
    }

    /// Whether its last slow page is too long ago to count.
    pub(super) fn is_forgotten(self) -> bool {
        !self.is_quick() && self.at.elapsed() > SLOW_TTL
    }

    /// Returns the time that a page of it takes.
    pub(super) fn took(self) -> Duration {
        self.took
    }
}

//! How fast domains are, by the pages that they answered.

use std::time::Duration;

use tokio::time::Instant;

/// A page that takes longer is slow.
pub(crate) const SLOW: Duration = Duration::from_secs(1);

/// How fast a domain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speed {
    Quick,
    /// A page of it was slow, then.
    Slow(Instant),
    /// Likewise, and it has answered none so far.
    Silent(Instant),
}

impl Speed {
    /// Of a domain of which another page is slow.
    pub(super) fn slowed(before: Option<Self>) -> Self {
        match before {
            Some(Self::Quick | Self::Slow(_)) => Self::Slow(Instant::now()),
            Some(Self::Silent(_)) | None => Self::Silent(Instant::now()),
        }
    }

    /// Of a domain that has answered a page after so long.
    pub(super) fn answered(before: Option<Self>, after: Duration) -> Self {
        match before {
            Some(Self::Slow(when) | Self::Silent(when)) if after < SLOW => Self::Slow(when),
            Some(Self::Quick) | None if after < SLOW => Self::Quick,
            _ => Self::Slow(Instant::now()),
        }
    }
}

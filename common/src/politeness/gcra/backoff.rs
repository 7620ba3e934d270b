//! Back-offs that hosts ask for.

use std::time::Duration;

use super::micros;

/// A host that was calm for so long after a back-off starts afresh; after a longer back-off, for as long as that took.
pub const FORGIVEN_AFTER: Duration = Duration::from_secs(300);

/// The back-off that a host asked for, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    /// When it began.
    pub since: u64,
    /// When it ends; zero if the host never asked for it.
    pub until: u64,
    /// How many refusals without `Retry-After` came in a row.
    pub strikes: u32,
}

impl Backoff {
    /// When its series of refusals is forgotten: when the host was calm for as long as it lasted, or for [`FORGIVEN_AFTER`].
    pub(super) fn forgiven(&self) -> u64 {
        self.until + (self.until - self.since).max(micros(FORGIVEN_AFTER))
    }
}

/// How long a back-off takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackoffTerms {
    /// As the host's `Retry-After` says, if there is one.
    pub asked: Option<Duration>,
    /// Otherwise for so long the first time, twice as long each time in a row,
    pub base: Duration,
    /// and up to half longer: by this, from 0 to 1.
    pub jitter: f64,
    /// Never longer than this, whatever the host asks for.
    pub most: Duration,
}

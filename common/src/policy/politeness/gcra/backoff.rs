//! Back-offs that hosts ask for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::micros;

/// Time without refusals after a back-off until a host starts afresh; after a longer back-off, it takes as long as
/// that.
pub const FORGIVEN_AFTER: Duration = Duration::from_secs(300);

/// The back-off that a host asked for, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    /// The start.
    pub since: u64,
    /// The end; zero if the host never asked for a back-off.
    pub until: u64,
    /// Number of consecutive refusals without `Retry-After`.
    pub strikes: u32,
}

impl Backoff {
    /// Returns when the series of refusals is forgotten: when the host was calm for as long as the back-off
    /// lasted, and at least for [`FORGIVEN_AFTER`].
    pub(super) fn forgiven(&self) -> u64 {
        self.until + (self.until - self.since).max(micros(FORGIVEN_AFTER))
    }
}

/// The length of a back-off.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackoffTerms {
    /// The host's `Retry-After`, if there is one.
    pub asked: Option<Duration>,
    /// The wait without `Retry-After` the first time; it doubles each time in a row.
    pub base: Duration,
    /// The fraction of half the wait to add, from 0 to 1.
    pub jitter: f64,
    /// Maximum length, whatever the host asks for.
    pub most: Duration,
}

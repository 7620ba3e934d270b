//! The selection of dead letters.

use std::time::Duration;

use super::Failed;
use crate::frontier::outcome::Reason;
use crate::time::UnixMs;

/// A filter for dead letters: one passes if it matches every given condition. An empty condition matches every
/// one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only these: a URL in any form, a task's key, or the exact text that is neither.
    pub urls: Vec<String>,
    /// Only with this reason.
    pub reason: Option<Reason>,
    /// Only of this host.
    pub host: Option<String>,
    /// Only those that failed longer ago than this.
    pub older_than: Option<Duration>,
}

impl Filter {
    /// Returns whether it passes every dead letter.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether a dead letter passes at `now`.
    pub fn takes(&self, failed: &Failed, now: UnixMs) -> bool {
        let cause = &failed.note.cause;
        (self.urls.is_empty() || self.urls.iter().any(|url| failed.is_named(url)))
            && self.reason.is_none_or(|reason| reason == cause.reason)
            && self.host.as_ref().is_none_or(|host| failed.host().eq_ignore_ascii_case(host))
            && self.older_than.is_none_or(|age| cause.failed_at.plus(age) <= now)
    }
}

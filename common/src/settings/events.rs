//! `[events]`: when a running crawl causes events before its end, and when a host's back-off does.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration::{self, minutes};
use crate::frontier::crawl::Counts;

/// `[events]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Events {
    /// Time without the end of a URL after which a running crawl has stalled; `0s` disables this.
    #[serde(with = "duration")]
    pub stalled_after: Duration,
    /// Percentage of failed URLs among those done or failed above which a crawl is failing.
    pub failing_above: u8,
    /// Minimum length of a back-off that causes an event; `0s` disables this.
    #[serde(with = "duration")]
    pub backoff_from: Duration,
}

impl Default for Events {
    fn default() -> Self {
        Self { stalled_after: minutes(30), failing_above: 50, backoff_from: minutes(1) }
    }
}

impl Events {
    /// Whether a crawl has stalled in which no URL has ended for `still`.
    pub fn has_stalled(&self, still: Duration) -> bool {
        !self.stalled_after.is_zero() && still >= self.stalled_after
    }

    /// Whether too many of the fetched URLs have failed.
    pub fn is_failing(&self, counts: &Counts) -> bool {
        counts.is_mostly_failed(self.failing_above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crawl_is_failing_when_a_larger_share_has_failed_than_is_allowed_and_that_says_something() {
        let is_failing = |failing_above, done, failed| {
            let counts = Counts { done, failed, ..Counts::default() };
            Events { failing_above, ..Events::default() }.is_failing(&counts)
        };
        assert!(!is_failing(50, 10, 10), "just as large");
        assert!(is_failing(50, 9, 11));
        assert!(!is_failing(50, 0, 19), "too few");
        assert!(is_failing(0, 99, 1));
        assert!(!is_failing(100, 0, 1_000), "never");
    }

    #[test]
    fn a_crawl_has_stalled_after_the_time_that_is_set_if_any_is() {
        let has_stalled = |stalled_after, still| {
            Events { stalled_after: minutes(stalled_after), ..Events::default() }.has_stalled(minutes(still))
        };
        assert!(has_stalled(10, 10) && !has_stalled(10, 9));
        assert!(!has_stalled(0, 10_000));
    }
}

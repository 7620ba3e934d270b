//! `[events]`: when a running crawl causes events before its end, and when a host's back-off does.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration::{self, minutes};
use crate::frontier::crawl::CrawlStats;

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

    /// Whether too many of a crawl's fetched URLs have failed.
    pub fn is_failing(&self, stats: &CrawlStats) -> bool {
        stats.is_failing(self.failing_above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontier::crawl::{Counts, CrawlState};
    use crate::names::CrawlRef;
    use crate::time::UnixMs;

    #[test]
    fn a_crawl_is_failing_when_a_larger_share_has_failed_than_is_allowed_and_that_says_something() {
        let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: "shop".parse().unwrap() };
        let stats = |status, done, failed| {
            let counts = Counts { done, failed, ..Counts::default() };
            CrawlStats { counts, ..CrawlStats::empty(crawl.clone(), status, UnixMs(0)) }
        };
        let fails = |failing_above, stats| Events { failing_above, ..Events::default() }.is_failing(&stats);
        let is_failing = |above, done, failed| fails(above, stats(CrawlState::Running, done, failed));
        assert!(!is_failing(50, 10, 10), "just as large");
        assert!(is_failing(50, 9, 11));
        assert!(!is_failing(50, 0, 19), "too few");
        assert!(is_failing(0, 99, 1));
        assert!(!is_failing(100, 0, 1_000), "never");
        let has_failed = |above, done, failed| fails(above, stats(CrawlState::Finished, done, failed));
        assert!(has_failed(50, 0, 1) && has_failed(50, 0, 19) && has_failed(50, 1, 4));
        assert!(!has_failed(50, 1, 3) && !has_failed(50, 2, 10), "the others of a small crawl are well");
        assert!(!has_failed(100, 0, 1) && !has_failed(50, 0, 0));
        for known in ["dropped:seen", "skipped:unchanged"] {
            let beside = |failed| CrawlStats {
                reasons: [(known.to_owned(), 9)].into(),
                ..stats(CrawlState::Finished, 0, failed)
            };
            assert!(!fails(50, beside(1)) && fails(50, beside(5)), "{known}");
        }
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

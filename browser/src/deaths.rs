//! Browsers that have died: after several in a short time, no page is rendered for a while.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Number of deaths within [`PERIOD`] after which no page is rendered for [`PAUSE`].
const MAX_DEATHS: usize = 3;
const PERIOD: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(60);

/// The latest deaths, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Deaths(Mutex<VecDeque<Instant>>);

impl Deaths {
    /// Records that a browser has died.
    pub(crate) fn note(&self) {
        let mut latest = self.0.lock();
        if latest.len() == MAX_DEATHS {
            latest.pop_front();
        }
        latest.push_back(Instant::now());
    }

    /// Returns the rest of the pause, if there is one.
    pub(crate) fn pause(&self) -> Option<Duration> {
        let latest = self.0.lock();
        let (first, last) = (latest.front()?, latest.back()?);
        let are_many = latest.len() == MAX_DEATHS && *last - *first < PERIOD;
        let left = (*last + PAUSE).saturating_duration_since(Instant::now());
        (are_many && !left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn three_deaths_in_a_minute_pause_rendering_for_a_minute() {
        let deaths = Deaths::default();
        let mut pauses = Vec::new();
        for _ in 0..3 {
            deaths.note();
            pauses.push(deaths.pause());
            advance(Duration::from_secs(20)).await;
        }
        assert_eq!(pauses, [None, None, Some(PAUSE)]);
        assert_eq!(deaths.pause(), Some(Duration::from_secs(40)));
        advance(Duration::from_secs(40)).await;
        assert_eq!(deaths.pause(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn deaths_that_are_far_between_pause_nothing() {
        let deaths = Deaths::default();
        for _ in 0..10 {
            deaths.note();
            assert_eq!(deaths.pause(), None);
            advance(Duration::from_secs(31)).await;
        }
    }
}

//! Browsers that have died or cannot be used: after several in a short time, no page is rendered for a while.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Number of deaths within [`PERIOD`] after which no page is rendered for [`PAUSE`].
const MAX_DEATHS: usize = 3;
const PERIOD: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(60);

/// The latest deaths, the oldest first, with the reason for the last.
#[derive(Debug, Default)]
pub(crate) struct Deaths(Mutex<(VecDeque<Instant>, String)>);

impl Deaths {
    /// Records that a browser has died for this reason.
    pub(crate) fn note(&self, why: &str) {
        let (latest, reason) = &mut *self.0.lock();
        why.clone_into(reason);
        if latest.len() == MAX_DEATHS {
            latest.pop_front();
        }
        latest.push_back(Instant::now());
    }

    /// Returns the rest of the pause, if there is one, and the reason for the last death.
    pub(crate) fn pause(&self) -> Option<(Duration, String)> {
        let (latest, reason) = &*self.0.lock();
        let (first, last) = (latest.front()?, latest.back()?);
        let are_many = latest.len() == MAX_DEATHS && *last - *first < PERIOD;
        let left = (*last + PAUSE).saturating_duration_since(Instant::now());
        (are_many && !left.is_zero()).then(|| (left, reason.clone()))
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
            deaths.note("it crashed");
            pauses.push(deaths.pause());
            advance(Duration::from_secs(20)).await;
        }
        let paused = |left| Some((left, "it crashed".to_owned()));
        assert_eq!(pauses, [None, None, paused(PAUSE)]);
        assert_eq!(deaths.pause(), paused(Duration::from_secs(40)));
        advance(Duration::from_secs(40)).await;
        assert_eq!(deaths.pause(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn deaths_that_are_far_between_pause_nothing() {
        let deaths = Deaths::default();
        for _ in 0..10 {
            deaths.note("it crashed");
            assert_eq!(deaths.pause(), None);
            advance(Duration::from_secs(31)).await;
        }
    }
}

//! Measures how late URLs return that were put off or are retried, and how far apart they may be to return in time.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use trawl_common::frontier::ladder::{LATE, MAX_LATE};

/// Shortest and longest time between two URLs that return to a worker, on average: each costs a round by way of the
/// broker.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(20));

/// Time between two adjustments.
const PERIOD: Duration = Duration::from_secs(1);

/// How late URLs return. While many are late, more return than this worker and its servers can handle: among them are
/// those of hosts that keep their pace.
pub(crate) struct Lateness(Mutex<State>);

struct State {
    interval: Duration,
    adjusted: Instant,
    count: u32,
    sum: Duration,
}

impl Default for Lateness {
    fn default() -> Self {
        let state = State { interval: INTERVALS.0, adjusted: Instant::now(), count: 0, sum: Duration::ZERO };
        Self(Mutex::new(state))
    }
}

impl Lateness {
    /// Records that a URL has returned, so much later than it was due.
    pub(crate) fn note(&self, late: Duration, now: Instant) {
        let mut state = self.0.lock();
        state.count += 1;
        state.sum += late.min(MAX_LATE);
        if state.adjusted + PERIOD <= now {
            state.adjust(now);
        }
    }

    /// Returns the time that should lie between two URLs that return to this worker, on average.
    pub(crate) fn interval(&self) -> Duration {
        self.0.lock().interval
    }
}

impl State {
    /// Doubles the interval if URLs were late since the last adjustment, otherwise shortens it by a tenth.
    fn adjust(&mut self, now: Instant) {
        let is_late = self.sum / self.count > LATE;
        let interval = if is_late { self.interval * 2 } else { self.interval.mul_f64(0.9) };
        *self = Self {
            interval: interval.clamp(INTERVALS.0, INTERVALS.1),
            adjusted: now,
            count: 0,
            sum: Duration::ZERO,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the interval after so many seconds in each of which a hundred URLs are this late.
    fn after(lateness: &Lateness, from: Instant, seconds: u64, late: Duration) -> Duration {
        for now in (0..seconds * 100).map(|at| from + Duration::from_millis(at * 10)) {
            lateness.note(late, now);
        }
        lateness.interval()
    }

    #[test]
    fn urls_return_further_apart_while_they_are_late_and_as_before_once_they_are_not() {
        let lateness = Lateness::default();
        let start = Instant::now();
        assert_eq!(after(&lateness, start, 20, Duration::from_millis(100)), INTERVALS.0);
        let later = start + Duration::from_secs(30);
        assert!(after(&lateness, later, 4, Duration::from_secs(2)) >= INTERVALS.0 * 8);
        let later = start + Duration::from_secs(60);
        assert_eq!(after(&lateness, later, 60, Duration::from_secs(9)), INTERVALS.1);
        let later = start + Duration::from_secs(200);
        assert_eq!(after(&lateness, later, 60, Duration::ZERO), INTERVALS.0);
    }
}

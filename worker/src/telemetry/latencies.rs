//! Request latencies, for the worker's heartbeat.

use std::time::Duration;

use parking_lot::Mutex;
use trawl_common::ports::Latency;

/// Maximum number of requests to record between two heartbeats; some ten times as many as a worker makes.
const MAX_RECORDED: usize = 65_536;

/// The latencies of the requests that ended since the last heartbeat.
#[derive(Debug, Default)]
pub(crate) struct Latencies(Mutex<Vec<Duration>>);

impl Latencies {
    /// Records the latency of a request.
    pub(crate) fn note(&self, took: Duration) {
        let mut all = self.0.lock();
        if all.len() < MAX_RECORDED {
            all.push(took);
        }
    }

    /// Returns the latency of the requests since the last call; `None` if none ended.
    pub(crate) fn take(&self) -> Option<Latency> {
        let mut all = std::mem::take(&mut *self.0.lock());
        all.sort_unstable();
        let rank = |percent: usize| (all.len() * percent).div_ceil(100).checked_sub(1);
        let of = |percent: usize| Some(all.get(rank(percent)?)?.as_millis() as u64);
        Some(Latency { p50_ms: of(50)?, p95_ms: of(95)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_requests_took_no_longer_than_the_median_and_one_of_twenty_longer_than_the_other() {
        let latencies = Latencies::default();
        (1..=100).rev().for_each(|ms| latencies.note(Duration::from_millis(ms)));
        assert_eq!(latencies.take(), Some(Latency { p50_ms: 50, p95_ms: 95 }));
        assert_eq!(latencies.take(), None, "each request counts once");
        latencies.note(Duration::from_millis(7));
        assert_eq!(latencies.take(), Some(Latency { p50_ms: 7, p95_ms: 7 }));
    }
}

//! A ceiling on the requests of one process to all hosts together, beside the schedule that each host has in the
//! fleet.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use crate::politeness::rate::Rate;

/// The window over which fast ceilings are kept, because timers are no finer than some milliseconds.
const WINDOW: Duration = Duration::from_millis(50);

/// The rate limit of one process for all its requests; by default there is none.
#[derive(Debug, Default)]
pub struct Ceiling(Option<Limit>);

#[derive(Debug)]
struct Limit {
    limiter: DefaultDirectRateLimiter,
    at_once: NonZeroU32,
}

impl Ceiling {
    /// Creates a ceiling of this rate.
    pub fn new(rate: Rate) -> Self {
        let Some(interval) = rate.interval() else { return Self::default() };
        let at_once = u32::try_from(WINDOW.as_nanos() / interval.as_nanos().max(1)).unwrap_or(u32::MAX);
        let at_once = NonZeroU32::new(at_once).unwrap_or(NonZeroU32::MIN);
        let limiter = |quota: Quota| RateLimiter::direct(quota.allow_burst(at_once));
        Self(Quota::with_period(interval).map(|quota| Limit { limiter: limiter(quota), at_once }))
    }

    /// Returns the number of requests that may go together at most.
    pub fn at_once(&self) -> usize {
        self.0.as_ref().map_or(usize::MAX, |limit| limit.at_once.get() as usize)
    }

    /// Returns whether another request may go now; if so, it is counted.
    pub fn try_pass(&self) -> bool {
        self.0.as_ref().is_none_or(|limit| limit.limiter.check().is_ok())
    }

    /// Waits until another request may go.
    pub async fn wait(&self) {
        if let Some(Limit { limiter, .. }) = &self.0 {
            limiter.until_ready().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn ceiling(rate: &str) -> Ceiling {
        Ceiling::new(rate.parse().unwrap())
    }

    #[tokio::test]
    async fn requests_go_no_faster_than_the_ceiling() {
        let ceiling = ceiling("20/s");
        let began = Instant::now();
        for _ in 0..5 {
            ceiling.wait().await;
        }
        assert!(began.elapsed() >= Duration::from_millis(200), "{:?}", began.elapsed());
    }

    #[test]
    fn a_fast_ceiling_is_kept_over_a_time_that_timers_can_tell() {
        let at_once = |rate| ceiling(rate).at_once();
        assert_eq!([at_once("1/h"), at_once("20/s"), at_once("1000/s")], [1, 1, 50]);
        assert_eq!(at_once("unlimited"), usize::MAX);
    }
}

//! Pages waiting for the sinks of a spider.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use trawl_common::time::UnixMs;

/// The time without progress after which sinks are more than busy.
const BUSY_TIME: Duration = Duration::from_millis(250);

/// Shortest and longest delay of a URL whose spider's sinks accept nothing.
const PUT_OFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The number of pages of a spider waiting for its sinks, and the time since these last stored any.
#[derive(Default)]
pub(crate) struct SinkBacklog(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    pages: usize,
    since: Option<Instant>,
}

impl SinkBacklog {
    /// Counts a waiting page. Called before the page is passed on: otherwise many more could start before it
    /// is counted.
    pub(crate) fn add(&self) {
        let mut waiting = self.0.lock();
        waiting.pages += 1;
        waiting.since.get_or_insert_with(Instant::now);
    }

    /// Counts this many pages as stored.
    pub(crate) fn take_off(&self, pages: usize) {
        let mut waiting = self.0.lock();
        waiting.pages -= pages;
        waiting.since = (waiting.pages > 0).then(Instant::now);
    }

    /// If the limit of waiting pages is reached, for a worker that holds `ahead` URLs, returns when to try a URL again:
    /// after about as long as the pages have been waiting.
    pub(crate) fn put_off(&self, ahead: u16) -> Option<UnixMs> {
        let stuck = self.stuck_for(ahead)?.clamp(PUT_OFF.0, PUT_OFF.1);
        Some(UnixMs::now().plus(stuck.mul_f64(rand::random_range(1.0..1.5))))
    }

    /// Returns the time for which the sinks have stored nothing, if the limit of waiting pages is reached: a
    /// quarter of `ahead`. While sinks make progress, the limit is three quarters: a fast crawl has that
    /// many in a few milliseconds.
    fn stuck_for(&self, ahead: u16) -> Option<Duration> {
        let waiting = self.0.lock();
        let stuck = waiting.since?.elapsed();
        let quarters = if stuck < BUSY_TIME { 3 } else { 1 };
        let most = (usize::from(ahead) * quarters / 4).max(1);
        (waiting.pages >= most).then_some(stuck)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn waiting(pages: usize) -> SinkBacklog {
        let backlog = SinkBacklog::default();
        (0..pages).for_each(|_| backlog.add());
        backlog
    }

    #[tokio::test(start_paused = true)]
    async fn sinks_that_take_pages_are_not_stuck_however_fast_these_come() {
        let backlog = waiting(0);
        for _ in 0..10 {
            (0..150).for_each(|_| backlog.add());
            assert_eq!(backlog.stuck_for(256), None);
            advance(BUSY_TIME / 2).await;
            backlog.take_off(150);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn sinks_that_take_nothing_have_a_quarter_of_what_is_sent_ahead_wait() {
        let (few, many) = (waiting(63), waiting(64));
        advance(BUSY_TIME).await;
        assert_eq!((few.stuck_for(256), many.stuck_for(256)), (None, Some(BUSY_TIME)));
    }

    #[tokio::test(start_paused = true)]
    async fn no_spider_has_more_than_three_quarters_of_what_is_sent_ahead_wait() {
        assert_eq!((waiting(191).stuck_for(256), waiting(192).stuck_for(256)), (None, Some(Duration::ZERO)));
        assert_eq!(waiting(1).stuck_for(1), Some(Duration::ZERO));
    }
}

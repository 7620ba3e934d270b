//! The reason why a crawl waits, for a line of progress.

use std::time::Duration;

use tokio::time::Instant;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::ports::Result;

/// The time without an end of a URL after which it is asked what the crawl waits for, and the interval of asking again.
const IDLE_INTERVAL: Duration = Duration::from_secs(2);

/// The reason why a crawl waits, which is looked up once none of its URLs has ended for a while.
#[derive(Debug)]
pub struct Waits {
    ended: u64,
    looked: Instant,
    words: String,
}

impl Default for Waits {
    /// Returns that nothing is known to keep the crawl waiting.
    fn default() -> Self {
        Self { ended: 0, looked: Instant::now(), words: String::new() }
    }
}

impl Waits {
    /// Returns the end of a line of progress: `; waits: ...`, or nothing. `ask` returns the reasons, the first of which
    /// is named.
    pub async fn of(&mut self, stats: &CrawlStats, ask: impl Future<Output = Result<Vec<String>>>) -> &str {
        let ended = stats.counts.ended();
        if ended != self.ended {
            *self = Self { ended, ..Self::default() };
        } else if self.looked.elapsed() >= IDLE_INTERVAL {
            // Without an answer, the line says less.
            let first = ask.await.unwrap_or_default().into_iter().next();
            self.words = first.map_or_else(String::new, |first| format!("; waits: {first}"));
            self.looked = Instant::now();
        }
        &self.words
    }
}

#[cfg(test)]
mod tests {
    use trawl_common::frontier::crawl::{Counts, CrawlState};
    use trawl_common::names::CrawlRef;
    use trawl_common::time::UnixMs;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reason_is_named_once_nothing_has_ended_for_a_while_and_until_something_does() {
        let stats = |done| {
            let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: "shop".parse().unwrap() };
            let stats = CrawlStats::empty(crawl, CrawlState::Running, UnixMs(0));
            CrawlStats { counts: Counts { admitted: 10, done, ..Counts::default() }, ..stats }
        };
        let ask = || async { Ok(vec!["the sink is away".to_owned(), "and more".to_owned()]) };
        let mut waits = Waits::default();
        assert_eq!(waits.of(&stats(1), ask()).await, "");
        tokio::time::advance(IDLE_INTERVAL).await;
        assert_eq!(waits.of(&stats(1), ask()).await, "; waits: the sink is away");
        assert_eq!(waits.of(&stats(1), ask()).await, "; waits: the sink is away");
        assert_eq!(waits.of(&stats(2), ask()).await, "");
    }
}

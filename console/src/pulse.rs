//! How the fleet does: looked at every few seconds, whoever looks at pages.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::names::CrawlId;
use trawl_common::ports::{Result, Stats};

use crate::shown::{Number, Rate};

/// How often it is looked at.
const EVERY: Duration = Duration::from_secs(5);
/// How many looks are kept: ten minutes.
const KEPT: usize = 120;
/// The size of a chart, in its own units.
const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 48.0;

/// What was seen lately, the oldest first.
#[derive(Default)]
pub(crate) struct Pulse(Mutex<VecDeque<Beat>>);

/// What was seen at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Beat {
    pages_per_second: f64,
    failures_per_second: f64,
    in_flight: f64,
    waiting: f64,
}

/// The last look at crawls: from it to the next one is how far they came.
struct Look {
    at: Instant,
    /// What each crawl had done, and what had failed.
    counts: HashMap<CrawlId, (u64, u64)>,
}

impl Pulse {
    /// Begins to look.
    pub(crate) fn start(stats: Arc<dyn Stats>, stop: CancellationToken) -> Arc<Self> {
        let pulse = Arc::new(Self::default());
        let looking = Arc::clone(&pulse);
        tokio::spawn(async move { stop.run_until_cancelled(looking.keep_looking(&*stats)).await });
        pulse
    }

    async fn keep_looking(&self, stats: &dyn Stats) {
        let (mut ticks, mut before) = (tokio::time::interval(EVERY), None);
        loop {
            ticks.tick().await;
            if let Err(error) = self.look(stats, &mut before).await {
                debug!(%error, "cannot look at the fleet");
            }
        }
    }

    async fn look(&self, stats: &dyn Stats, before: &mut Option<Look>) -> Result<()> {
        let (crawls, workers) = (stats.crawls().await?, stats.workers().await?);
        let now = Instant::now();
        let (done, failed) = before.as_ref().map_or((0.0, 0.0), |before| before.pace(&crawls, now));
        let beat = Beat {
            pages_per_second: done,
            failures_per_second: failed,
            in_flight: workers.iter().map(|worker| worker.in_flight).sum::<u64>() as f64,
            waiting: crawls.iter().map(|crawl| crawl.pending).sum::<u64>() as f64,
        };
        if before.is_some() {
            self.keep(beat);
        }
        let counts = |crawl: CrawlStats| (crawl.crawl, (crawl.counts.done, crawl.counts.failed));
        *before = Some(Look { at: now, counts: crawls.into_iter().map(counts).collect() });
        Ok(())
    }

    fn keep(&self, beat: Beat) {
        let mut beats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if beats.len() == KEPT {
            beats.pop_front();
        }
        beats.push_back(beat);
    }

    /// The charts of what was seen.
    pub(crate) fn charts(&self) -> Vec<Chart> {
        let beats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rate = |value| Rate(value).to_string();
        let count = |value: f64| Number(value as u64).to_string();
        vec![
            Chart::of("Pages a second", beats.iter().map(|beat| beat.pages_per_second), rate),
            Chart::of("Failures a second", beats.iter().map(|beat| beat.failures_per_second), rate),
            Chart::of("In flight", beats.iter().map(|beat| beat.in_flight), count),
            Chart::of("URLs waiting", beats.iter().map(|beat| beat.waiting), count),
        ]
    }
}

impl Look {
    /// How many pages were done and failed a second since then. A crawl that was forgotten meanwhile takes nothing away.
    fn pace(&self, crawls: &[CrawlStats], now: Instant) -> (f64, f64) {
        let (mut done, mut failed) = (0, 0);
        for crawl in crawls {
            let (done_then, failed_then) = self.counts.get(&crawl.crawl).copied().unwrap_or_default();
            done += crawl.counts.done.saturating_sub(done_then);
            failed += crawl.counts.failed.saturating_sub(failed_then);
        }
        let seconds = now.duration_since(self.at).as_secs_f64().max(0.001);
        (done as f64 / seconds, failed as f64 / seconds)
    }
}

/// One number over the last minutes.
pub(crate) struct Chart {
    pub(crate) title: &'static str,
    /// The number now; nothing before the first look.
    pub(crate) now: Option<String>,
    /// The largest in this time.
    pub(crate) most: String,
    /// The points of its line, as SVG has them.
    pub(crate) line: String,
}

impl Chart {
    fn of(
        title: &'static str,
        values: impl ExactSizeIterator<Item = f64> + Clone,
        shown: impl Fn(f64) -> String,
    ) -> Self {
        let most = values.clone().fold(0.0, f64::max);
        let scale = if most > 0.0 { most } else { 1.0 };
        // The latest is at the right edge, however many there are.
        let first = KEPT - values.len();
        let mut line = String::new();
        for (index, value) in values.clone().enumerate() {
            let x = (first + index) as f64 / (KEPT - 1) as f64 * WIDTH;
            let y = HEIGHT - 1.0 - value / scale * (HEIGHT - 3.0);
            let _ = write!(line, "{x:.1},{y:.1} ");
        }
        Self { title, now: values.last().map(&shown), most: shown(most), line }
    }

    /// The same as an area above the ground.
    pub(crate) fn area(&self) -> String {
        let first = self.line.split(',').next().unwrap_or_default();
        match self.line.is_empty() {
            true => String::new(),
            false => format!("{first},{HEIGHT} {}{WIDTH},{HEIGHT}", self.line),
        }
    }
}

#[cfg(test)]
mod tests {
    use trawl_common::frontier::crawl::CrawlState;
    use trawl_common::names::CrawlRef;
    use trawl_common::time::UnixMs;

    use super::*;

    fn crawl(id: &str, done: u64) -> CrawlStats {
        let crawl = CrawlRef { id: id.parse().unwrap(), spider: "shop".parse().unwrap() };
        let mut stats = CrawlStats::empty(crawl, CrawlState::Running, UnixMs(0));
        stats.counts.done = done;
        stats
    }

    #[test]
    fn a_crawl_that_is_forgotten_makes_no_negative_pace() {
        let at = Instant::now();
        let counts = [("20260101-000000-aaaaaa", 10), ("20260101-000000-bbbbbb", 900)];
        let counts = counts.map(|(id, done)| (id.parse().unwrap(), (done, 0))).into_iter().collect();
        let now = [crawl("20260101-000000-aaaaaa", 30), crawl("20260101-000000-cccccc", 10)];
        assert_eq!(Look { at, counts }.pace(&now, at + Duration::from_secs(5)), (6.0, 0.0));
    }

    #[test]
    fn only_the_last_minutes_are_kept_and_the_latest_is_at_the_right() {
        let pulse = Pulse::default();
        assert!(pulse.charts().iter().all(|chart| chart.now.is_none() && chart.line.is_empty()));
        for number in 0..2 * KEPT {
            pulse.keep(Beat { waiting: number as f64, ..Beat::default() });
        }
        let charts = pulse.charts();
        assert_eq!(charts[3].now.as_deref(), Some("239"));
        assert_eq!(charts[3].line.split_whitespace().count(), KEPT);
        assert!(charts[3].line.starts_with("0.0,") && charts[3].line.ends_with("240.0,2.0 "));
        assert!(charts[0].line.ends_with("240.0,47.0 "), "a line without height is on the ground");
    }
}

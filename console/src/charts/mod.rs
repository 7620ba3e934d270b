//! Charts of the fleet: sampled every few seconds, whether or not anyone views a page.

mod chart;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::names::CrawlId;
use trawl_common::ports::{LaneName, LaneState, Latency, Result, Stats, WorkerState};

pub(crate) use self::chart::Chart;
use crate::shown::{Number, Rate};

/// Interval between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// Number of samples that are kept: ten minutes.
const MAX_SAMPLES: usize = 120;
/// Number of samples in each mean of the longer span: five minutes.
const SAMPLES_PER_MEAN: usize = 60;
/// Number of means that are kept: a day.
const MAX_MEANS: usize = 288;
/// A crawl moves if a URL of it has ended since then.
const LATELY: Duration = Duration::from_secs(60);
/// The samples.
#[derive(Default)]
pub(crate) struct Samples(Mutex<Kept>);

/// The samples that are kept, oldest first.
#[derive(Default)]
struct Kept {
    latest: VecDeque<Sample>,
    /// The samples of the last five minutes, which have no mean yet.
    partial: Vec<Sample>,
    means: VecDeque<Sample>,
    /// When a URL of each crawl was last seen to end.
    moved: HashMap<CrawlId, Instant>,
}

/// The time that charts span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    Minutes,
    Day,
}

impl Span {
    /// Returns the span of this name; by default the shorter.
    pub(crate) fn named(name: Option<&str>) -> Self {
        if name == Some("day") { Self::Day } else { Self::Minutes }
    }

    pub(crate) fn is_day(self) -> bool {
        self == Self::Day
    }

    pub(crate) fn title(self) -> &'static str {
        if self.is_day() { "The last day" } else { "The last ten minutes" }
    }

    /// The labels of the time axis.
    pub(crate) fn axis(self) -> [&'static str; 3] {
        if self.is_day() { ["24 h ago", "12 h ago", "now"] } else { ["10 min ago", "5 min ago", "now"] }
    }

    /// The number of points that fit.
    fn points(self) -> usize {
        if self.is_day() { MAX_MEANS } else { MAX_SAMPLES }
    }
}

/// A sample. A value that could not be determined is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sample {
    pages_per_second: f64,
    failures_per_second: f64,
    in_flight: f64,
    /// URLs without a final state.
    waiting: f64,
    /// The duration of requests in milliseconds: median and 95th percentile.
    median: Option<f64>,
    slow: Option<f64>,
    priority: Option<f64>,
    bulk: Option<f64>,
    parked: Option<f64>,
}

/// The previous sample of crawls, from which progress is measured.
struct Look {
    at: Instant,
    /// The progress of each crawl.
    progress: HashMap<CrawlId, Progress>,
}

/// The number of a crawl's URLs that have ended, and of the failed ones among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    handled: u64,
    failed: u64,
}

impl Progress {
    fn new(stats: &CrawlStats) -> Self {
        Self { handled: stats.counts.handled(), failed: stats.counts.failed }
    }
}

impl Samples {
    /// Starts sampling.
    pub(crate) fn start(stats: Arc<dyn Stats>, stop: CancellationToken) -> Arc<Self> {
        let samples = Arc::new(Self::default());
        let looking = Arc::clone(&samples);
        tokio::spawn(async move { stop.run_until_cancelled(looking.keep_looking(&*stats)).await });
        samples
    }

    async fn keep_looking(&self, stats: &dyn Stats) {
        let (mut ticks, mut before) = (tokio::time::interval(SAMPLE_INTERVAL), None);
        loop {
            ticks.tick().await;
            if let Err(error) = self.look(stats, &mut before).await {
                debug!(%error, "cannot look at the fleet");
            }
        }
    }

    async fn look(&self, stats: &dyn Stats, before: &mut Option<Look>) -> Result<()> {
        let (crawls, workers, lanes) = (stats.crawls().await?, stats.workers().await?, stats.lanes().await?);
        let now = Instant::now();
        if let Some(before) = before {
            let (pages_per_second, failures_per_second) = before.speed(&crawls, now);
            let waiting = crawls.iter().map(|crawl| crawl.pending).sum::<u64>() as f64;
            let seen = Sample { pages_per_second, failures_per_second, waiting, ..Sample::default() };
            self.keep(seen.of_workers(&workers).of_lanes(&lanes));
            self.note_moves(before, &crawls, now);
        }
        let progress = crawls.into_iter().map(|crawl| (crawl.crawl.clone(), Progress::new(&crawl))).collect();
        *before = Some(Look { at: now, progress });
        Ok(())
    }

    fn keep(&self, sample: Sample) {
        let kept = &mut *self.0.lock();
        push(&mut kept.latest, sample, MAX_SAMPLES);
        kept.partial.push(sample);
        if kept.partial.len() == SAMPLES_PER_MEAN {
            push(&mut kept.means, Sample::mean(&kept.partial), MAX_MEANS);
            kept.partial.clear();
        }
    }

    /// Notes the crawls of which a URL has ended since the sample before.
    fn note_moves(&self, before: &Look, crawls: &[CrawlStats], now: Instant) {
        let has_moved =
            |stats: &&CrawlStats| before.progress.get(&stats.crawl) != Some(&Progress::new(stats));
        let moved = &mut self.0.lock().moved;
        moved.retain(|_, at| now.duration_since(*at) < LATELY);
        moved.extend(crawls.iter().filter(has_moved).map(|stats| (stats.crawl.clone(), now)));
    }

    /// Returns whether a URL of the crawl was seen to end lately.
    pub(crate) fn is_moving(&self, crawl: &str) -> bool {
        let moved = &self.0.lock().moved;
        moved.iter().any(|(id, at)| id.as_str() == crawl && at.elapsed() < LATELY)
    }

    /// Returns the charts of the samples.
    pub(crate) fn charts(&self, span: Span) -> Vec<Chart> {
        let kept = self.0.lock();
        let means = kept.means.iter().copied().chain(Some(Sample::mean(&kept.partial)));
        let samples: Vec<Sample> = match span {
            Span::Minutes => kept.latest.iter().copied().collect(),
            Span::Day if kept.partial.is_empty() => kept.means.iter().copied().collect(),
            Span::Day => means.skip((kept.means.len() + 1).saturating_sub(MAX_MEANS)).collect(),
        };
        let rate = |value| Rate(value).to_string();
        let count = |value: f64| Number(value as u64).to_string();
        let time = |value: f64| format!("{} ms", Number(value as u64));
        let one = |title, read: fn(&Sample) -> f64, shown: &dyn Fn(f64) -> String| {
            let values = samples.iter().map(|sample| Some(read(sample))).collect();
            Chart::new(title, vec![("", values)], shown, span)
        };
        let line = |name, read: fn(&Sample) -> Option<f64>| (name, samples.iter().map(read).collect());
        vec![
            one("Pages a second", |sample| sample.pages_per_second, &rate),
            one("Failures a second", |sample| sample.failures_per_second, &rate),
            one("In flight", |sample| sample.in_flight, &count),
            one("URLs pending", |sample| sample.waiting, &count),
            Chart::new(
                "Request time",
                vec![line("median", |sample| sample.median), line("95 %", |sample| sample.slow)],
                &time,
                span,
            ),
            Chart::new(
                "Queued",
                vec![
                    line("priority", |sample| sample.priority),
                    line("bulk", |sample| sample.bulk),
                    line("parked", |sample| sample.parked),
                ],
                &count,
                span,
            ),
        ]
    }
}

fn push(samples: &mut VecDeque<Sample>, sample: Sample, most: usize) {
    if samples.len() == most {
        samples.pop_front();
    }
    samples.push_back(sample);
}

impl Sample {
    /// Returns the mean of samples, of those in which a value could be determined.
    fn mean(samples: &[Self]) -> Self {
        let of = |read: fn(&Self) -> Option<f64>| {
            let values: Vec<f64> = samples.iter().filter_map(read).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        Self {
            pages_per_second: of(|sample| Some(sample.pages_per_second)).unwrap_or_default(),
            failures_per_second: of(|sample| Some(sample.failures_per_second)).unwrap_or_default(),
            in_flight: of(|sample| Some(sample.in_flight)).unwrap_or_default(),
            waiting: of(|sample| Some(sample.waiting)).unwrap_or_default(),
            median: of(|sample| sample.median),
            slow: of(|sample| sample.slow),
            priority: of(|sample| sample.priority),
            bulk: of(|sample| sample.bulk),
            parked: of(|sample| sample.parked),
        }
    }

    /// Adds the workers' values: the median weighted by the request rate of each, and the 95th percentile of the
    /// slowest.
    fn of_workers(self, workers: &[WorkerState]) -> Self {
        let in_flight = workers.iter().map(|worker| worker.in_flight).sum::<u64>() as f64;
        // A worker whose request rate rounds to zero still counts.
        let made = |worker: &WorkerState| Some((worker.latency?, worker.pages_per_second.max(0.01)));
        let made: Vec<(Latency, f64)> = workers.iter().filter_map(made).collect();
        let pages: f64 = made.iter().map(|(_, pages)| pages).sum();
        let median = made.iter().map(|(latency, pages)| latency.p50_ms as f64 * pages).sum::<f64>() / pages;
        let slow = made.iter().map(|(latency, _)| latency.p95_ms as f64).reduce(f64::max);
        Self { in_flight, median: slow.map(|_| median), slow, ..self }
    }

    /// Adds the content of the lanes. Parked URLs that are due count as parked.
    fn of_lanes(self, lanes: &[LaneState]) -> Self {
        let waiting = |names: &[LaneName]| {
            let meant = lanes.iter().filter(|state| names.contains(&state.lane));
            meant.map(|state| state.messages as f64).reduce(|one, other| one + other)
        };
        Self {
            priority: waiting(&[LaneName::Priority]),
            bulk: waiting(&[LaneName::Bulk]),
            parked: waiting(&[LaneName::Wait, LaneName::Due]),
            ..self
        }
    }
}

impl Look {
    /// The number of pages that ended, and of those that failed, per second since this sample. A crawl that was
    /// forgotten in between subtracts nothing.
    fn speed(&self, crawls: &[CrawlStats], now: Instant) -> (f64, f64) {
        let (mut handled, mut failed) = (0, 0);
        for crawl in crawls {
            let (now, then) =
                (Progress::new(crawl), self.progress.get(&crawl.crawl).copied().unwrap_or_default());
            handled += now.handled.saturating_sub(then.handled);
            failed += now.failed.saturating_sub(then.failed);
        }
        let seconds = now.duration_since(self.at).as_secs_f64().max(0.001);
        (handled as f64 / seconds, failed as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use trawl_common::frontier::crawl::CrawlState;
    use trawl_common::names::CrawlRef;
    use trawl_common::time::UnixMs;

    use super::chart::Series;
    use super::*;

    fn crawl(id: &str, done: u64) -> CrawlStats {
        let crawl = CrawlRef { id: id.parse().unwrap(), spider: "shop".parse().unwrap() };
        let mut stats = CrawlStats::empty(crawl, CrawlState::Running, UnixMs(0));
        stats.counts.done = done;
        stats
    }

    fn look(at: Instant, crawls: &[CrawlStats]) -> Look {
        let progress = crawls.iter().map(|stats| (stats.crawl.clone(), Progress::new(stats))).collect();
        Look { at, progress }
    }

    #[test]
    fn a_crawl_that_is_forgotten_makes_no_negative_speed() {
        let at = Instant::now();
        let then = look(at, &[crawl("20260101-000000-aaaaaa", 10), crawl("20260101-000000-bbbbbb", 900)]);
        let now = [crawl("20260101-000000-aaaaaa", 30), crawl("20260101-000000-cccccc", 10)];
        assert_eq!(then.speed(&now, at + Duration::from_secs(5)), (6.0, 0.0));
    }

    #[test]
    fn all_pages_that_end_count_as_pages_a_second() {
        let at = Instant::now();
        let mut stats = crawl("20260101-000000-aaaaaa", 100);
        (stats.counts.failed, stats.counts.skipped) = (50, 20);
        let then = look(at, std::slice::from_ref(&stats));
        (stats.counts.done, stats.counts.failed, stats.counts.skipped) = (130, 60, 30);
        assert_eq!(then.speed(&[stats], at + Duration::from_secs(10)), (5.0, 1.0));
    }

    #[test]
    fn only_the_last_minutes_are_kept_and_the_latest_is_at_the_right() {
        let samples = Samples::default();
        let is_empty = |series: &Series| series.now.is_none() && series.line.is_empty();
        assert!(samples.charts(Span::Minutes).iter().flat_map(|chart| &chart.series).all(is_empty));
        for number in 0..2 * MAX_SAMPLES {
            samples.keep(Sample { waiting: number as f64, ..Sample::default() });
        }
        let charts = samples.charts(Span::Minutes);
        let waiting = charts[3].only().unwrap();
        assert_eq!(waiting.now.as_deref(), Some("239"));
        assert_eq!(waiting.line.split_whitespace().count(), MAX_SAMPLES);
        assert!(waiting.line.starts_with("0.0,") && waiting.line.ends_with("240.0,2.0 "));
        assert!(
            charts[0].only().unwrap().line.ends_with("240.0,47.0 "),
            "a line without height is on the ground"
        );
    }

    #[test]
    fn the_chart_of_a_day_has_means_of_five_minutes() {
        let samples = Samples::default();
        let waiting = |span| samples.charts(span)[3].only().map(|series| series.now.clone()).unwrap();
        for number in 0..SAMPLES_PER_MEAN {
            samples.keep(Sample { waiting: number as f64, ..Sample::default() });
        }
        assert_eq!(waiting(Span::Day).as_deref(), Some("29"), "the mean of 0 to 59");
        assert_eq!(waiting(Span::Minutes).as_deref(), Some("59"));
        samples.keep(Sample { waiting: 7.0, ..Sample::default() });
        assert_eq!(waiting(Span::Day).as_deref(), Some("7"), "of those since");
        for _ in 0..(MAX_MEANS + 2) * SAMPLES_PER_MEAN {
            samples.keep(Sample::default());
        }
        let charts = samples.charts(Span::Day);
        assert_eq!(charts[3].only().unwrap().line.split_whitespace().count(), MAX_MEANS);
    }

    #[test]
    fn a_crawl_moves_while_urls_of_it_end() {
        let (samples, at) = (Samples::default(), Instant::now());
        let id = "20260101-000000-aaaaaa";
        let before = look(at, &[crawl(id, 10)]);
        samples.note_moves(&before, &[crawl(id, 10)], at);
        assert!(!samples.is_moving(id));
        samples.note_moves(&before, &[crawl(id, 11)], at);
        assert!(samples.is_moving(id));
    }

    #[test]
    fn the_lines_of_a_chart_have_one_scale_and_leave_out_what_was_not_seen() {
        let samples = Samples::default();
        let lane = |lane, messages| LaneState { lane, messages, consumers: None, oldest: None };
        let seen = Sample::default().of_lanes(&[
            lane(LaneName::Due, 2),
            lane(LaneName::Bulk, 90),
            lane(LaneName::Wait, 43),
        ]);
        samples.keep(seen);
        let chart = &samples.charts(Span::Minutes)[5];
        let now: Vec<_> = chart.series.iter().map(|series| series.now.as_deref()).collect();
        assert_eq!(now, [None, Some("90"), Some("45")]);
        assert!(
            chart.series[0].line.is_empty() && chart.series[2].line.ends_with(",24.5 "),
            "half of the height"
        );
        assert_eq!(chart.most, "90");
    }
}

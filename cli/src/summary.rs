//! The progress and the end of a crawl, in words.

use std::time::Duration;

use trawl_common::frontier::crawl::CrawlStats;

use crate::{count, counted};

/// Describes what a crawl has fetched: `12 pages in 1.5 s (8/s), 1 failed, 0 skipped, 0 expired`.
pub fn summary(stats: &CrawlStats) -> String {
    let counts = &stats.counts;
    format!(
        "{} in {:.1} s ({:.0}/s), {} failed, {} skipped, {} expired",
        counted(counts.done, "page"),
        stats.seconds,
        pages_per_second(stats),
        count(counts.failed),
        count(counts.skipped),
        count(counts.expired),
    )
}

/// Describes how far a crawl is: `3 of 20 pages, 0 failed, 2/s, 8s to go`. Nothing is said of the time left while
/// nothing has ended.
pub fn progress(stats: &CrawlStats) -> String {
    let counts = &stats.counts;
    let rate = pages_per_second(stats);
    let rest = time_left(stats, rate).map(|rest| format!(", {} to go", humantime::format_duration(rest)));
    format!(
        "{} of {}, {} failed, {rate:.0}/s{}",
        count(counts.done),
        counted(counts.admitted, "page"),
        count(counts.failed),
        rest.unwrap_or_default(),
    )
}

/// Describes the items of a crawl: `12 items (offer 3, product 9), compared: 2 changed, 10 unchanged`.
pub fn items(stats: &CrawlStats) -> String {
    let kinds = stats.item_kinds.iter().filter(|(kind, _)| !kind.is_empty());
    let kinds: Vec<String> = kinds.map(|(kind, number)| format!("{kind} {}", count(*number))).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
    let changes = stats.item_changes.iter().map(|(change, number)| format!("{} {change}", count(*number)));
    let changes: Vec<String> = changes.collect();
    let changes =
        if changes.is_empty() { String::new() } else { format!(", compared: {}", changes.join(", ")) };
    format!("{}{kinds}{changes}", counted(stats.items, "item"))
}

/// Returns the number of ended URLs per second over the whole crawl.
pub fn pages_per_second(stats: &CrawlStats) -> f64 {
    stats.counts.handled() as f64 / stats.seconds.max(0.001)
}

/// Estimates the time left at this pace; `None` if nothing is left, or nothing ends.
pub fn time_left(stats: &CrawlStats, pages_per_second: f64) -> Option<Duration> {
    let seconds = stats.pending as f64 / pages_per_second;
    (stats.pending > 0 && seconds.is_finite()).then(|| Duration::from_secs(seconds as u64))
}

#[cfg(test)]
mod tests {
    use trawl_common::frontier::crawl::{Counts, CrawlState};
    use trawl_common::names::CrawlRef;
    use trawl_common::time::UnixMs;

    use super::*;

    #[test]
    fn items_are_described_with_their_kinds_and_changes() {
        let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: "shop".parse().unwrap() };
        let stats = CrawlStats { items: 3, ..CrawlStats::empty(crawl, CrawlState::Running, UnixMs(0)) };
        assert_eq!(items(&stats), "3 items");
        let item_kinds = [("offer".to_owned(), 3)].into();
        let item_changes = [("changed".to_owned(), 3), ("unchanged".to_owned(), 2000)].into();
        let compared = CrawlStats { item_kinds, item_changes, ..stats };
        assert_eq!(items(&compared), "3 items (offer 3), compared: 3 changed, 2,000 unchanged");
    }

    #[test]
    fn no_time_left_is_made_up_while_nothing_has_ended() {
        let of = |done| {
            let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: "shop".parse().unwrap() };
            let counts = Counts { admitted: 10, done, ..Counts::default() };
            let stats = CrawlStats::empty(crawl, CrawlState::Running, UnixMs(0));
            progress(&CrawlStats { counts, pending: 10 - done, seconds: 4.0, ..stats })
        };
        assert_eq!(of(0), "0 of 10 pages, 0 failed, 0/s");
        assert_eq!(of(8), "8 of 10 pages, 0 failed, 2/s, 1s to go");
    }
}

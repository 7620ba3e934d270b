//! Judges whether a crawl yields as much as its spider expects.

use std::num::NonZeroU64;

use crate::frontier::crawl::{CrawlState, CrawlStats, HAS};

/// Percentage of failed URLs above which unchanged pages are not why a crawl yields too little.
const FAILED_PERCENT: u8 = 50;

/// Returns what a finished crawl yields too little of, each in a sentence. One that was given nothing new, or was
/// cancelled, owes nothing, and pages that are as they were make up for pages and items that are not there.
pub fn unmet(stats: &CrawlStats) -> Vec<String> {
    let is_excused = stats.counts.cancelled > 0 || stats.found_nothing_new();
    if stats.status != CrawlState::Finished || is_excused {
        return Vec::new();
    }
    let expect = &stats.judging.expect;
    let done = stats.counts.done;
    let as_they_were = if stats.is_failing(FAILED_PERCENT) { 0 } else { stats.as_they_were() };
    // They had as many items each as the pages that were read have; if none was, any number.
    let per_page = if done == 0 { u64::MAX } else { stats.items.div_ceil(done).max(1) };
    let fewer = |what: &str, least: Option<NonZeroU64>, is: u64, spared: u64| {
        let least = least.filter(|least| is.saturating_add(spared) < least.get())?;
        Some(format!("[expect] {what}: {is}, and {least} were expected"))
    };
    let mut all: Vec<String> = fewer("done", expect.done, done, as_they_were).into_iter().collect();
    all.extend(fewer("items", expect.items, stats.items, as_they_were.saturating_mul(per_page)));
    for (field, least) in expect.fields.iter().filter(|_| stats.items > 0) {
        let with = stats.reasons.get(&format!("{HAS}{field}")).copied().unwrap_or_default();
        let share = with as f64 / stats.items as f64;
        if share < *least {
            let (share, least) = (share * 100.0, least * 100.0);
            all.push(format!(
                "[expect] fields.{field}: {share:.1} % of items have it, and {least} % were expected"
            ));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontier::DedupScope;
    use crate::frontier::crawl::Counts;
    use crate::frontier::judging::{Expect, Judging};
    use crate::names::CrawlRef;
    use crate::time::UnixMs;

    /// Returns the stats of a finished crawl of which 10 pages and 100 items are expected, 90 % of them with a price.
    fn finished(done: u64, items: u64, reasons: &[(&str, u64)]) -> CrawlStats {
        let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: "shop".parse().unwrap() };
        let reasons = reasons.iter().map(|(reason, number)| ((*reason).to_owned(), *number)).collect();
        let counts = Counts { admitted: done, done, ..Counts::default() };
        let fields = [("price".to_owned(), 0.9)].into();
        let expect = Expect { done: NonZeroU64::new(10), items: NonZeroU64::new(100), fields };
        let judging = Judging { expect, ..Judging::default() };
        CrawlStats {
            counts,
            items,
            reasons,
            judging,
            ..CrawlStats::empty(crawl, CrawlState::Finished, UnixMs(0))
        }
    }

    #[test]
    fn what_a_crawl_yields_too_little_of_is_named_with_how_much_that_is() {
        let nothing = Vec::<String>::new();
        assert_eq!(unmet(&finished(10, 100, &[("has:price", 90)])), nothing);
        assert_eq!(
            unmet(&finished(9, 99, &[("has:price", 33)])),
            [
                "[expect] done: 9, and 10 were expected",
                "[expect] items: 99, and 100 were expected",
                "[expect] fields.price: 33.3 % of items have it, and 90 % were expected",
            ]
        );
        assert_eq!(unmet(&finished(0, 0, &[("dropped:unchanged", 50)])), nothing);
        let of_dedup = |dedup| CrawlStats { dedup, ..finished(0, 0, &[("dropped:seen", 50)]) };
        assert_eq!(unmet(&of_dedup(DedupScope::Spider)), nothing);
        assert_eq!(unmet(&of_dedup(DedupScope::Crawl)).len(), 2);
        assert_eq!(unmet(&CrawlStats { status: CrawlState::Running, ..finished(0, 0, &[]) }), nothing);
        assert_eq!(unmet(&CrawlStats { judging: Judging::default(), ..finished(0, 0, &[]) }), nothing);
    }

    #[test]
    fn pages_that_are_as_they_were_make_up_for_so_many_and_not_for_what_failed() {
        let of = |done, items, unchanged, failed| {
            let mut stats = finished(done, items, &[("skipped:unchanged", unchanged), ("has:price", items)]);
            stats.counts.failed = failed;
            unmet(&stats).len()
        };
        assert_eq!(of(1, 10, 9, 0), 0, "ten pages of ten items");
        assert_eq!(of(1, 10, 8, 0), 2, "nine pages of ten items");
        assert_eq!(of(2, 0, 50, 0), 1, "the pages that were read gave no item");
        assert_eq!(of(0, 0, 1, 0), 1, "nobody knows how many items it had, but it is one page");
        assert_eq!(of(0, 0, 50, 4), 0, "few have failed");
        assert_eq!(of(0, 0, 9_980, 10_019), 2);
    }
}

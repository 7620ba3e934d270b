//! Judges whether a crawl yields as much as its spider expects.

use std::num::NonZeroU64;

use crate::frontier::crawl::{CrawlState, CrawlStats, HAS};

/// Returns what a finished crawl yields too little of, each in a sentence. One that found
/// all as it was or had seen it, or was cancelled, owes nothing.
pub fn unmet(stats: &CrawlStats) -> Vec<String> {
    let is_excused = stats.counts.cancelled > 0 || stats.found_all_as_it_was() || stats.found_nothing_new();
    if stats.status != CrawlState::Finished || is_excused {
        return Vec::new();
    }
    let expect = &stats.judging.expect;
    let fewer = |what: &str, least: Option<NonZeroU64>, is: u64| {
        let least = least.filter(|least| is < least.get())?;
        Some(format!("[expect] {what}: {is}, and {least} were expected"))
    };
    let mut all: Vec<String> = fewer("done", expect.done, stats.counts.done).into_iter().collect();
    all.extend(fewer("items", expect.items, stats.items));
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
}

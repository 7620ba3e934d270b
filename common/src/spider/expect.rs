//! `[expect]`: the least that crawls of a spider are to yield.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use crate::frontier::crawl::{CrawlStats, HAS};

/// `[expect]`: what a crawl of the spider yields if all is well, which is looked at when it has finished.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expect {
    /// How many pages and tasks are done, at least.
    pub done: Option<NonZeroU64>,
    /// How many items it gives, at least.
    pub items: Option<NonZeroU64>,
    /// Which share of its items has a value in a field, at least: from 0 to 1.
    pub fields: BTreeMap<String, f64>,
}

impl Expect {
    /// Returns what a finished crawl yields too little of, each in a sentence. One that found
    /// all as it was or had seen it, or was cancelled, owes nothing.
    pub fn unmet(&self, stats: &CrawlStats) -> Vec<String> {
        if stats.counts.cancelled > 0 || stats.found_all_as_it_was() || stats.found_nothing_new() {
            return Vec::new();
        }
        let fewer = |what: &str, least: Option<NonZeroU64>, is: u64| {
            let least = least.filter(|least| is < least.get())?;
            Some(format!("[expect] {what}: {is}, and {least} were expected"))
        };
        let mut all: Vec<String> = fewer("done", self.done, stats.counts.done).into_iter().collect();
        all.extend(fewer("items", self.items, stats.items));
        for (field, least) in self.fields.iter().filter(|_| stats.items > 0) {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontier::DedupScope;
    use crate::frontier::crawl::{Counts, CrawlState};
    use crate::names::CrawlRef;
    use crate::time::UnixMs;

    fn finished(done: u64, items: u64, reasons: &[(&str, u64)]) -> CrawlStats {
        let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: "shop".parse().unwrap() };
        let reasons = reasons.iter().map(|(reason, number)| ((*reason).to_owned(), *number)).collect();
        let counts = Counts { admitted: done, done, ..Counts::default() };
        CrawlStats { counts, items, reasons, ..CrawlStats::empty(crawl, CrawlState::Finished, UnixMs(0)) }
    }

    #[test]
    fn what_a_crawl_yields_too_little_of_is_named_with_how_much_that_is() {
        let fields = [("price".to_owned(), 0.9)].into();
        let expect = Expect { done: NonZeroU64::new(10), items: NonZeroU64::new(100), fields };
        assert_eq!(expect.unmet(&finished(10, 100, &[("has:price", 90)])), Vec::<String>::new());
        assert_eq!(
            expect.unmet(&finished(9, 99, &[("has:price", 33)])),
            [
                "[expect] done: 9, and 10 were expected",
                "[expect] items: 99, and 100 were expected",
                "[expect] fields.price: 33.3 % of items have it, and 90 % were expected",
            ]
        );
        assert_eq!(expect.unmet(&finished(0, 0, &[("dropped:unchanged", 50)])), Vec::<String>::new());
        let of_dedup = |dedup| CrawlStats { dedup, ..finished(0, 0, &[("dropped:seen", 50)]) };
        assert_eq!(expect.unmet(&of_dedup(DedupScope::Spider)), Vec::<String>::new());
        assert_eq!(expect.unmet(&of_dedup(DedupScope::Crawl)).len(), 2);
        assert_eq!(Expect::default().unmet(&finished(0, 0, &[])), Vec::<String>::new());
    }
}

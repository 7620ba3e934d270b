//! Watches the last pages of a crawl, which pauses itself when they yield too little.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::frontier::crawl::{CrawlStats, DUPLICATES};
use crate::frontier::judging::Quality;
use crate::text::{counted, printable};

/// The number of looks at a crawl while a window of pages passes.
const LOOKS: u64 = 10;

impl Quality {
    /// The number of pages between two looks, and the least number of pages or items that is judged.
    fn step(&self) -> u64 {
        (self.window / LOOKS).max(1)
    }

    /// Returns a sentence for each threshold that these pages miss.
    fn misses(&self, pages: &Sample) -> Vec<String> {
        let all = pages.pages();
        let of = format!("of the last {}", counted(all, "page"));
        let mut misses = Vec::new();
        for (field, [with, without]) in &pages.required {
            let share = share(*with, with + without).filter(|_| with + without >= self.step());
            if let Some((share, least)) = share.zip(self.required).filter(|(share, least)| share < least) {
                misses.push(format!(
                    "[quality] required: {} {of} where it was looked for have `{}`, and at least {} were expected",
                    percent(share),
                    printable(field, 100),
                    percent(least)
                ));
            }
        }
        let items = share(pages.items, pages.done).filter(|_| pages.done >= self.step());
        if let Some((items, least)) = items.zip(self.items_per_page).filter(|(items, least)| items < least) {
            let pages = counted(pages.done, "page");
            misses.push(format!(
                "[quality] items_per_page: the last {pages} gave {items:.2} items each, and at least {least} were expected"
            ));
        }
        let failed = share(pages.failed, all);
        if let Some((failed, most)) = failed.zip(self.failed).filter(|(failed, most)| failed > most) {
            misses.push(format!(
                "[quality] failed: {} {of} have failed, and at most {} were expected",
                percent(failed),
                percent(most)
            ));
        }
        let again = share(pages.duplicates, pages.items).filter(|_| pages.items >= self.step());
        if let Some((again, most)) = again.zip(self.duplicates).filter(|(again, most)| again > most) {
            misses.push(format!(
                "[quality] duplicates: {} of the {} {of} are duplicates, and at most {} were expected",
                percent(again),
                counted(pages.items, "item"),
                percent(most)
            ));
        }
        misses
    }
}

/// Returns `part / all`; `None` if there is nothing.
fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

fn percent(share: f64) -> String {
    format!("{} %", (share * 1000.0).round() / 10.0)
}

/// The counters of a crawl that are judged, at one moment or between two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Sample {
    done: u64,
    failed: u64,
    items: u64,
    duplicates: u64,
    /// By required field, the pages that have it and those that lack it.
    required: BTreeMap<String, [u64; 2]>,
}

impl Sample {
    fn new(stats: &CrawlStats) -> Self {
        let required =
            stats.required.iter().map(|(field, pages)| (field.clone(), [pages.with, pages.without]));
        Self {
            done: stats.counts.done,
            failed: stats.counts.failed,
            items: stats.items,
            duplicates: stats.reasons.get(DUPLICATES).copied().unwrap_or_default(),
            required: required.collect(),
        }
    }

    fn pages(&self) -> u64 {
        self.done + self.failed
    }

    /// Returns what was counted after `earlier`. Replayed failures are uncounted, so a counter may have become less.
    fn since(&self, earlier: &Self) -> Self {
        let required = self.required.iter().map(|(field, [with, without])| {
            let [with_before, without_before] = earlier.required.get(field).copied().unwrap_or_default();
            (field.clone(), [with.saturating_sub(with_before), without.saturating_sub(without_before)])
        });
        Self {
            done: self.done.saturating_sub(earlier.done),
            failed: self.failed.saturating_sub(earlier.failed),
            items: self.items.saturating_sub(earlier.items),
            duplicates: self.duplicates.saturating_sub(earlier.duplicates),
            required: required.collect(),
        }
    }
}

/// The last looks at a crawl, oldest first: little more than a window of pages. It begins empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QualityWindow(VecDeque<Sample>);

impl QualityWindow {
    /// Looks at a crawl. Returns why it is to be paused, if its last pages yield too little.
    pub fn look(&mut self, quality: &Quality, stats: &CrawlStats) -> Option<String> {
        let now = Sample::new(stats);
        let is_whole = |from: &Sample| now.pages().saturating_sub(from.pages()) >= quality.window;
        while self.0.get(1).is_some_and(is_whole) {
            self.0.pop_front();
        }
        let first = self.0.front().filter(|first| is_whole(first));
        let misses = first.map(|first| quality.misses(&now.since(first))).unwrap_or_default();
        self.0.push_back(now);
        (!misses.is_empty()).then(|| misses.join("; "))
    }

    /// Returns the number of pages, done or failed, at which the crawl is looked at next.
    pub fn next_look(&self, quality: &Quality) -> u64 {
        self.0.back().map_or(0, |last| last.pages() + quality.step())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontier::crawl::{Counts, CrawlState, FieldPages};
    use crate::names::CrawlRef;
    use crate::time::UnixMs;

    const NONE: Quality =
        Quality { window: 100, required: None, items_per_page: None, failed: None, duplicates: None };

    /// Returns the stats of a crawl with this many pages done, failed, with a price and without one, of two items each.
    fn stats(done: u64, failed: u64, with: u64, without: u64) -> CrawlStats {
        let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: "shop".parse().unwrap() };
        CrawlStats {
            counts: Counts { done, failed, ..Counts::default() },
            items: 2 * with,
            reasons: [(DUPLICATES.to_owned(), without)].into(),
            required: [("price".to_owned(), FieldPages { with, without })].into(),
            ..CrawlStats::empty(crawl, CrawlState::Running, UnixMs(0))
        }
    }

    /// The stats of a crawl after this many pages of the bad kind.
    type After<'a> = &'a dyn Fn(u64) -> CrawlStats;

    /// Returns the number of pages at which a crawl is paused that is well up to page 500, and the reason.
    fn paused(quality: &Quality, of_bad: impl Fn(u64) -> CrawlStats) -> Option<(u64, String)> {
        let mut window = QualityWindow::default();
        (1..=1000).find_map(|pages| {
            let now = if pages <= 500 { stats(pages, 0, pages, 0) } else { of_bad(pages - 500) };
            if now.counts.done + now.counts.failed < window.next_look(quality) {
                return None;
            }
            let why = window.look(quality, &now);
            assert!(window.0.len() <= LOOKS as usize + 2, "{}", window.0.len());
            Some((pages - 500.min(pages), why?))
        })
    }

    #[test]
    fn a_crawl_is_paused_within_200_pages_after_it_falls_below_any_threshold() {
        let without = |bad| stats(500 + bad, 0, 500, bad);
        let cases: [(Quality, After<'_>, &str); 4] = [
            (Quality { required: Some(0.5), ..NONE }, &without, "have `price`, and at least 50 %"),
            (Quality { items_per_page: Some(0.1), ..NONE }, &without, "items each, and at least 0.1"),
            (
                Quality { failed: Some(0.9), ..NONE },
                &|bad| stats(500, bad, 500, 0),
                "of the last 100 pages have failed",
            ),
            (
                Quality { duplicates: Some(0.4), ..NONE },
                &|bad| stats(500 + bad, 0, 500 + bad / 2, bad),
                "are duplicates, and at most 40 %",
            ),
        ];
        for (quality, of_bad, named) in cases {
            let (pages, why) = paused(&quality, of_bad).expect(named);
            assert!(pages <= 110 && why.contains(named), "{pages} pages: {why}");
        }
    }

    #[test]
    fn a_crawl_that_is_well_goes_on_and_few_pages_say_nothing() {
        let strict = Quality {
            window: 100,
            required: Some(1.0),
            items_per_page: Some(2.0),
            failed: Some(0.0),
            duplicates: Some(0.0),
        };
        assert_eq!(paused(&strict, |more| stats(500 + more, 0, 500 + more, 0)), None);
        let rare = |number| {
            let mut window = QualityWindow::default();
            let required = Quality { required: Some(1.0), ..NONE };
            assert_eq!(window.look(&required, &stats(0, 0, 0, 0)), None);
            window.look(&required, &stats(100, 0, 0, number)).is_some()
        };
        assert!(!rare(9) && rare(10), "a field that few pages were to have says nothing");
        let mut window = QualityWindow::default();
        assert_eq!(window.look(&strict, &stats(0, 1, 0, 0)), None);
        assert_eq!(window.look(&strict, &stats(0, 100, 0, 0)), None, "99 pages are no window");
    }

    #[test]
    fn a_window_that_begins_anew_does_not_judge_earlier_pages() {
        let quality = Quality { failed: Some(0.5), ..NONE };
        let mut window = QualityWindow::default();
        assert_eq!(window.look(&quality, &stats(0, 300, 0, 0)), None);
        assert_eq!(window.look(&quality, &stats(100, 300, 0, 0)), None);
        assert_eq!(window.next_look(&quality), 410);
        assert!(window.look(&quality, &stats(100, 460, 0, 0)).is_some());
    }

    #[test]
    fn a_window_reads_as_it_is_written() {
        let mut window = QualityWindow::default();
        window.look(&NONE, &stats(3, 1, 2, 1));
        let text = serde_json::to_string(&window).unwrap();
        assert_eq!(serde_json::from_str::<QualityWindow>(&text).unwrap(), window);
    }
}

//! Sentences about what is amiss with a crawl, where its counters alone do not say it.

use crate::frontier::DedupScope;
use crate::frontier::crawl::CrawlStats;

/// Maximum number of reasons that are named.
const NAMED: usize = 3;

/// Returns sentences about what is amiss with a crawl.
pub fn notes(stats: &CrawlStats) -> Vec<String> {
    [incomplete(stats), without_items(stats), empty(stats)].into_iter().flatten().collect()
}

/// Returns a sentence if its sources were not all read.
pub fn incomplete(CrawlStats { crawl, incomplete, status, .. }: &CrawlStats) -> Option<String> {
    let way_out = match status.is_over() {
        true => "another crawl reads them again".to_owned(),
        false => format!("the same command with `--crawl {crawl}` reads them again"),
    };
    incomplete.then(|| {
        format!(
            "crawl {crawl} is incomplete: its sources were not all read, as who read them died, was stopped, or met an error; {way_out}"
        )
    })
}

/// Returns a sentence if none of its pages gives an item although its spider extracts some.
pub fn without_items(stats: &CrawlStats) -> Option<String> {
    let CrawlStats { crawl, spider, counts, .. } = stats;
    stats.has_lost_items().then(|| {
        format!(
            "crawl {crawl} gives no item: none of its {} pages has any, though its spider extracts some; \
             `trawl spider try {spider} URL` shows what a page yields",
            counts.done
        )
    })
}

/// Returns a sentence if nothing came of it, with the reason. With a dedup by spider that may be in order.
pub fn empty(stats: &CrawlStats) -> Option<String> {
    stats.empty.then(|| format!("nothing came of crawl {}: {}", stats.crawl, why_empty(stats)))
}

fn why_empty(stats: &CrawlStats) -> String {
    let CrawlStats { reasons, dedup, .. } = stats;
    let mut most: Vec<_> = reasons.iter().filter(|(reason, _)| !reason.starts_with("left_out:")).collect();
    most.sort_by_key(|(_, number)| std::cmp::Reverse(**number));
    let words: Vec<String> =
        most.into_iter().take(NAMED).map(|(reason, number)| words(reason, *number)).collect();
    let words = if words.is_empty() { "its sources name no URL".to_owned() } else { words.join(", ") };
    match dedup {
        DedupScope::Spider if reasons.contains_key("dropped:seen") => {
            format!(
                "{words}; `--dedup crawl` fetches what earlier crawls have seen, `--recrawl changed` what has changed"
            )
        }
        _ => words,
    }
}

fn words(reason: &str, number: u64) -> String {
    let (are, urls) = if number == 1 { ("was", "URL") } else { ("were", "URLs") };
    match reason.split_once(':').unwrap_or((reason, "")) {
        ("dropped", "seen") => format!("{number} {urls} {are} seen before"),
        ("dropped", "outside") => format!("{number} {urls} {are} outside allowed_domains"),
        ("dropped", "invalid") => format!("{number} {are} no URL{}", if number == 1 { "" } else { "s" }),
        (kind, "") => format!("{number} {kind}"),
        (kind, why) => format!("{number} {urls} {are} {kind} ({why})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontier::crawl::CrawlState;
    use crate::names::CrawlRef;
    use crate::time::UnixMs;

    fn finished(reasons: &[(&str, u64)]) -> CrawlStats {
        let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: "docs".parse().unwrap() };
        let reasons = reasons.iter().map(|(reason, number)| ((*reason).to_owned(), *number)).collect();
        CrawlStats { reasons, ..CrawlStats::empty(crawl, CrawlState::Finished, UnixMs(0)) }.concluded()
    }

    #[test]
    fn a_crawl_that_took_nothing_says_why_and_what_takes_it() {
        let [note] = notes(&finished(&[("dropped:seen", 1)])).try_into().unwrap();
        assert!(note.contains("1 URL was seen before; `--dedup crawl`"), "{note}");
        let [note] = notes(&finished(&[("skipped:type", 240), ("left_out:depth", 3)])).try_into().unwrap();
        assert!(note.ends_with("240 URLs were skipped (type)"), "{note}");
        let [note] = notes(&finished(&[])).try_into().unwrap();
        assert!(note.ends_with("its sources name no URL"), "{note}");
    }

    #[test]
    fn a_recrawl_that_found_all_as_it_was_is_no_empty_one() {
        assert_eq!(notes(&finished(&[("skipped:unchanged", 7)])), Vec::<String>::new());
    }

    #[test]
    fn an_incomplete_crawl_says_how_it_is_completed() {
        let stats = CrawlStats { incomplete: true, status: CrawlState::Running, ..finished(&[]) };
        assert!(notes(&stats)[0].contains("`--crawl c1` reads them again"));
    }
}

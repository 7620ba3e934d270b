//! Sentences about what is amiss with a crawl, where its counters alone do not say it.

use crate::frontier::DedupScope;
use crate::frontier::crawl::{CrawlStats, HANDED, LOGIN_FORM, SEEN};
use crate::frontier::unmet::unmet;
use crate::names::SpiderName;
use crate::text::{count, counted, printable};

/// Maximum number of reasons that are named.
const MAX_REASONS: usize = 3;

/// Percentage of failed URLs above which most fail.
const FAILED_PERCENT: u8 = 50;

/// The kinds of what can be amiss with a crawl, as metrics name them.
pub const KINDS: [&str; 7] = ["held", "incomplete", "failing", "no_items", "no_fields", "unmet", "empty"];

/// Returns sentences about what is amiss with a crawl: problems of workers and sources that were not read come as far
/// as workers and the log were asked for them.
pub fn notes(stats: &CrawlStats) -> Vec<String> {
    let unread = stats.unread.iter().filter(|_| stats.incomplete).cloned();
    let troubles = stats.troubles.iter().cloned();
    troubles.chain(amiss(stats).map(|(_, sentence)| sentence)).chain(unread).collect()
}

/// Returns what is amiss with a crawl: one of [`KINDS`], and a sentence about it.
pub fn amiss(stats: &CrawlStats) -> impl Iterator<Item = (&'static str, String)> {
    let all = [
        held(stats),
        incomplete(stats),
        failing(stats),
        without_items(stats),
        without_fields(stats),
        less_than_expected(stats),
        empty(stats, ""),
    ];
    KINDS.into_iter().zip(all).filter_map(|(kind, sentence)| Some((kind, sentence?)))
}

/// Returns a sentence if trawl itself has paused it.
fn held(CrawlStats { crawl, held, .. }: &CrawlStats) -> Option<String> {
    let why = held.as_ref()?;
    Some(format!("crawl {crawl} is paused: {why}; see to it, and then `trawl resume {crawl}`"))
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

/// Returns a sentence if most of what was fetched has failed.
fn failing(stats: &CrawlStats) -> Option<String> {
    let crawl = &stats.crawl;
    mostly_failed(stats, &format!("--crawl {crawl}"))
}

/// Returns a sentence if most of what was fetched has failed. `dead_letters` are the flags with which `trawl dlq` finds
/// it.
pub fn mostly_failed(stats: &CrawlStats, dead_letters: &str) -> Option<String> {
    let CrawlStats { crawl, counts, reasons, .. } = stats;
    let most = if counts.done == 0 { "all" } else { "most" };
    let why = reasons.iter().filter_map(|(reason, number)| Some((reason.strip_prefix("failed:")?, *number)));
    let (why, _) = why.max_by_key(|(_, number)| *number)?;
    stats.is_failing(FAILED_PERCENT).then(|| {
        format!(
            "{most} of crawl {crawl} fails: {} of {} ({why}); `trawl dlq list {dead_letters} --limit 5` shows the answers, \
             and `trawl dlq replay {dead_letters}` sends all again once the cause is gone",
            counts.failed,
            counted(counts.done + counts.failed, "URL")
        )
    })
}

/// Returns a sentence if none of its many pages gives an item although its spider extracts some.
fn without_items(stats: &CrawlStats) -> Option<String> {
    stats.has_no_items().then(|| no_item(stats))
}

/// Returns a sentence if it has ended without any item although its spider extracts some, for whoever waited for it.
pub fn ended_without_items(stats: &CrawlStats) -> Option<String> {
    stats.ended_without_items().then(|| no_item(stats))
}

fn no_item(stats: &CrawlStats) -> String {
    let CrawlStats { crawl, spider, counts, .. } = stats;
    let pages = counted(counts.done, "page");
    format!(
        "crawl {crawl} gives no item: it has {pages} without any, though its spider extracts some{}; {}",
        login_forms(stats),
        way_out(spider)
    )
}

/// Returns a sentence if none of several pages has a field that its spider requires.
pub fn without_fields(stats: &CrawlStats) -> Option<String> {
    let CrawlStats { crawl, spider, .. } = stats;
    let lost = on_pages(stats.lost_fields())?;
    Some(format!(
        "no page of crawl {crawl} has what its spider requires: missing are {lost}{}; {}",
        login_forms(stats),
        way_out(spider)
    ))
}

/// Returns a sentence that names the required fields that pages lack, for whoever waited for it, except those that
/// [`without_fields`] names.
pub fn missing_fields(stats: &CrawlStats) -> Option<String> {
    let is_lost = |field: &str| {
        let of_kind = format!(".{field}");
        stats.lost_fields().any(|(lost, _)| lost == field || lost.ends_with(&of_kind))
    };
    let missing = on_pages(stats.missing_fields().filter(|(field, _)| !is_lost(field)))?;
    Some(format!("pages of crawl {} lack required fields: {missing}", stats.crawl))
}

/// Names fields, each with the number of pages that lack it.
fn on_pages<'a>(fields: impl Iterator<Item = (&'a str, u64)>) -> Option<String> {
    let named =
        fields.map(|(field, pages)| format!("`{}` on {}", printable(field, 100), counted(pages, "page")));
    Some(named.collect::<Vec<_>>().join(", ")).filter(|named| !named.is_empty())
}

/// Returns what it yields too little of.
fn less_than_expected(stats: &CrawlStats) -> Option<String> {
    Some(unmet(stats).join("; ")).filter(|unmet| !unmet.is_empty())
}

/// Says how many pages without items look like a log-in page.
fn login_forms(stats: &CrawlStats) -> String {
    match stats.reasons.get(LOGIN_FORM) {
        None => String::new(),
        Some(1) => {
            "; 1 of them has a field for a password, as a log-in page has: does the site want a [session]?"
                .to_owned()
        }
        Some(pages) => format!(
            "; {} of them have a field for a password, as a log-in page has: does the site want a [session]?",
            count(*pages)
        ),
    }
}

/// The next step if a selector no longer matches.
fn way_out(spider: &SpiderName) -> String {
    format!("the site may have changed; `trawl spider try {spider} URL` shows what a page yields")
}

/// Returns a sentence if nothing came of it, with the reason. With a dedup by spider that may be in order. `place` are
/// the flags, after a space, with which commands find a state file.
pub fn empty(stats: &CrawlStats, place: &str) -> Option<String> {
    stats.empty.then(|| format!("nothing came of crawl {}: {}", stats.crawl, why_empty(stats, place)))
}

/// Returns a sentence if it has found nothing new, which is in order.
pub fn nothing_new(stats: &CrawlStats) -> Option<String> {
    let CrawlStats { crawl, spider, .. } = stats;
    let seen = stats.reasons.get(SEEN).copied().unwrap_or_default();
    stats.nothing_new.then(|| {
        format!(
            "nothing new in crawl {crawl}: all that its sources name ({}) was seen by spider {spider} before",
            count(seen)
        )
    })
}

fn why_empty(stats: &CrawlStats, place: &str) -> String {
    let CrawlStats { spider, reasons, dedup, .. } = stats;
    let mut most: Vec<_> = reasons.iter().filter(|(reason, _)| !is_no_end(reason)).collect();
    most.sort_by_key(|(_, number)| std::cmp::Reverse(**number));
    let words: Vec<String> =
        most.into_iter().take(MAX_REASONS).map(|(reason, number)| words(reason, *number)).collect();
    let words = if words.is_empty() { "its sources name no URL".to_owned() } else { words.join(", ") };
    let words = match stats.failed_before() {
        0 => words,
        _ => format!("{words}; `trawl dlq replay --spider {spider}{place}` sends again what failed"),
    };
    match dedup {
        DedupScope::Spider if reasons.contains_key(SEEN) => {
            format!(
                "{words}; `--dedup crawl` fetches what earlier crawls have seen, `--recrawl changed` what has changed"
            )
        }
        _ => words,
    }
}

/// Whether a reason counts something else than URLs of the crawl and entries of its sources.
fn is_no_end(reason: &str) -> bool {
    reason.starts_with("left_out:") || reason.starts_with(HANDED)
}

fn words(reason: &str, number: u64) -> String {
    let (are, urls) = (if number == 1 { "was" } else { "were" }, counted(number, "URL"));
    match reason.split_once(':').unwrap_or((reason, "")) {
        ("dropped", "seen") => format!("{urls} {are} seen before"),
        ("dropped", "failed_before") => format!("{urls} failed before"),
        ("dropped", "outside") => format!("{urls} {are} outside allowed_domains"),
        ("dropped", "invalid") => format!("{number} of the sources' lines {are} no URL"),
        (kind, "") => format!("{number} {kind}"),
        (kind, why) => format!("{urls} {are} {kind} ({why})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontier::crawl::{Counts, CrawlState};
    use crate::frontier::judging::Judging;
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
        let [note] =
            notes(&finished(&[("dropped:failed_before", 2), ("dropped:seen", 1)])).try_into().unwrap();
        let said = "2 URLs failed before, 1 URL was seen before; `trawl dlq replay --spider docs` sends again what failed; `--dedup";
        assert!(note.contains(said), "{note}");
        let [note] = notes(&finished(&[("skipped:type", 240), ("left_out:depth", 3)])).try_into().unwrap();
        assert!(note.ends_with("240 URLs were skipped (type)"), "{note}");
        let [note] = notes(&finished(&[])).try_into().unwrap();
        assert!(note.ends_with("its sources name no URL"), "{note}");
    }

    #[test]
    fn that_nothing_is_new_is_in_order_if_someone_has_chosen_what_counts_as_seen() {
        let judging = Judging { is_dedup_chosen: true, ..Judging::default() };
        let chosen = |reasons| CrawlStats { judging: judging.clone(), ..finished(reasons) }.concluded();
        let stats = chosen(&[("dropped:seen", 12)]);
        assert_eq!((notes(&stats), stats.empty), (Vec::new(), false));
        assert!(nothing_new(&stats).unwrap().contains("(12) was seen by spider docs before"));
        assert!(chosen(&[]).empty, "its sources name nothing at all");
        assert_eq!(nothing_new(&finished(&[("dropped:seen", 12)])), None);
    }

    #[test]
    fn a_crawl_that_mostly_fails_says_why_and_how_it_is_sent_again() {
        let counts = Counts { done: 3, failed: 30, ..Counts::default() };
        let stats = CrawlStats { counts, ..finished(&[("failed:dns", 1), ("failed:http", 29)]) }.concluded();
        let [note] = notes(&stats).try_into().unwrap();
        assert!(note.starts_with("most of crawl c1 fails: 30 of 33 URLs (http); "), "{note}");
        assert!(note.contains("`trawl dlq replay --crawl c1`"), "{note}");
    }

    #[test]
    fn a_crawl_whose_pages_all_lack_a_required_field_says_which_and_how_to_look() {
        let counts = Counts { done: 60, ..Counts::default() };
        let stats = CrawlStats {
            counts,
            items: 60,
            ..finished(&[
                ("missing:name", 7),
                ("missing:price", 60),
                ("with:name", 53),
                ("without:name", 7),
                ("without:price", 60),
            ])
        }
        .concluded();
        let [note] = notes(&stats).try_into().unwrap();
        assert!(
            note.starts_with(
                "no page of crawl c1 has what its spider requires: missing are `price` on 60 pages; "
            ),
            "{note}"
        );
        assert!(note.contains("`trawl spider try docs URL`"), "{note}");
        let others = missing_fields(&stats).unwrap();
        assert_eq!(others, "pages of crawl c1 lack required fields: `name` on 7 pages");
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

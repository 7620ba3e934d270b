//! The program's own counters.

use super::*;
use crate::faults::ledger::stats::{ReportedCounts, ReportedHost};

/// Returns the counters of `pages` pages, of which every other one failed.
pub(super) fn of(pages: u64) -> ReportedStats {
    let failed = pages / 2;
    let counts =
        ReportedCounts { admitted: pages, done: pages - failed, failed, ..ReportedCounts::default() };
    ReportedStats {
        status: "finished".to_owned(),
        counts,
        pending: 0,
        reasons: [("failed:http".to_owned(), failed), ("left_out:depth".to_owned(), 7)].into(),
        hosts: vec![ReportedHost { host: "site".to_owned(), counts }],
    }
}

/// Sets the stats of both status and event.
pub(super) fn set_stats(facts: &mut Facts, stats: ReportedStats) {
    facts.ends = Some(vec![End { id: "end".to_owned(), crawl: "crawl".to_owned(), stats: stats.clone() }]);
    facts.stats = Some(stats);
}

/// Returns the problems of a fair crawl after its counters are changed, everywhere alike.
fn wrong(change: impl Fn(&mut ReportedCounts), reasons: &[(&str, u64)]) -> String {
    let mut facts = fair();
    let mut stats = of(4);
    change(&mut stats.counts);
    stats.hosts[0].counts = stats.counts;
    stats.reasons = reasons.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    set_stats(&mut facts, stats);
    problems(&facts).join("\n")
}

const FAILED: &[(&str, u64)] = &[("failed:http", 2)];

#[test]
fn every_page_is_taken_in_once_and_counted_by_its_end() {
    assert_eq!(wrong(|_| {}, FAILED), "");
    let found = wrong(|counts| (counts.admitted, counts.done) = (5, 3), FAILED);
    assert!(found.contains("admitted is 5 and not 4") && found.contains("done is 3 and not 2"), "{found}");
    let found = wrong(|counts| (counts.done, counts.failed) = (3, 1), &[("failed:http", 1)]);
    assert!(found.contains("done is 3 and not 2") && found.contains("failed:http is 1 and not 2"), "{found}");
    let found = wrong(|_| {}, &[("failed:http", 1), ("failed:timeout", 1)]);
    assert!(found.contains("failed:http is 1 and not 2") && found.contains("failed:timeout is 1 and not 0"));
    let found =
        wrong(|counts| (counts.done, counts.skipped) = (1, 1), &[("failed:http", 2), ("skipped:limit", 1)]);
    assert!(
        found.contains("done is 1 and not 2") && found.contains("skipped:limit is 1 and not 0"),
        "{found}"
    );
}

#[test]
fn stats_that_contradict_themselves_are_a_problem() {
    let found = wrong(|counts| counts.expired = 1, FAILED);
    assert_eq!(found.lines().count(), 1, "more have ended than were taken in: {found}");
    assert!(wrong(|_| {}, &[("failed:http", 3)]).contains("2 Failed, with 3 reasons"));
    assert!(problem(|facts| set_stats(facts, ReportedStats { pending: 1, ..of(4) })).contains("1 pending"));
    assert!(
        problem(|facts| set_stats(facts, ReportedStats { status: "running".to_owned(), ..of(4) }))
            .contains("running")
    );
    let found = problem(|facts| set_stats(facts, ReportedStats { hosts: of(2).hosts, ..of(4) }));
    assert!(found.contains("all hosts together"), "{found}");
}

#[test]
fn the_end_is_announced_once_with_the_stats_as_they_stay() {
    let ends = |facts: &mut Facts| facts.ends.take().unwrap_or_default();
    assert!(problem(|facts| facts.ends = Some(Vec::new())).contains("no event"));
    let found = problem(|facts| {
        let mut found = ends(facts);
        found.push(End { id: "another".to_owned(), ..found[0].clone() });
        facts.ends = Some(found);
    });
    assert!(found.contains("finished 2 times"), "{found}");
    let found = problem(|facts| {
        let found = ends(facts).pop().map(|end| End { stats: of(3), ..end });
        facts.ends = Some(found.into_iter().collect());
    });
    assert!(found.contains("the event of the end says"), "{found}");
    // An event has no counters of hosts.
    let mut facts = fair();
    let found =
        ends(&mut facts).pop().map(|end| End { stats: ReportedStats { hosts: Vec::new(), ..of(4) }, ..end });
    facts.ends = Some(found.into_iter().collect());
    assert_eq!(problems(&facts), [""; 0]);
    let forgotten = |from| {
        let mut facts = Facts { stats: None, ..fair() };
        facts.faults.push(fault(Kind::StoreEmptied, None, from, from + 1));
        problems(&facts)
    };
    assert!(forgotten(150).concat().contains("no counters"));
    assert_eq!(forgotten(210), [""; 0], "the crawl had ended by then");
}

/// Whether the counters of a fair crawl may lack its first page, which was requested at 100, after this fault.
fn may_lack_the_first(kind: Kind, from: u64, to: u64) -> bool {
    let mut facts = fair();
    facts.faults.push(fault(kind, None, from, to));
    let mut stats = of(4);
    (stats.counts.admitted, stats.counts.done) = (3, 1);
    stats.hosts[0].counts = stats.counts;
    set_stats(&mut facts, stats);
    problems(&facts).is_empty()
}

#[test]
fn only_what_redis_was_made_to_forget_may_be_missing_from_the_stats() {
    assert!(may_lack_the_first(Kind::StoreFlushed, 150, 150));
    assert!(may_lack_the_first(Kind::StoreEmptied, 100, 101));
    assert!(!may_lack_the_first(Kind::StoreEmptied, 98, 99), "it was asked for after that");
    assert!(may_lack_the_first(Kind::StoreTruncated, 101, 102));
    assert!(!may_lack_the_first(Kind::StoreTruncated, 150, 151), "it was taken in long before");
    assert!(!may_lack_the_first(Kind::StoreKill, 100, 101));
    assert!(!may_lack_the_first(Kind::BrokerGone, 100, 101));
}

#[test]
fn what_redis_forgot_counts_at_most_once() {
    let mut facts = fair();
    facts.faults.push(fault(Kind::StoreFlushed, None, 150, 150));
    set_stats(&mut facts, of(2));
    assert_eq!(problems(&facts), [""; 0]);
    set_stats(&mut facts, of(6));
    assert!(problems(&facts).concat().contains("admitted is 6 and not 0 to 4"));
}

#[test]
fn what_redis_took_in_anew_and_then_lost_with_its_last_second_counts_at_most_once() {
    let mut facts = fair();
    // All pages are requested before Redis is emptied, and the first page once more just before it is truncated.
    facts.asks.push(ask(0, 1, 190));
    facts.faults.push(fault(Kind::StoreFlushed, None, 150, 150));
    let truncated =
        Injected { from: seconds(190), to: seconds(191), kind: Kind::StoreTruncated, victim: None };
    facts.faults.push(truncated);
    set_stats(&mut facts, of(0));
    assert_eq!(problems(&facts), [""; 0]);
    facts.faults.remove(0);
    assert!(problems(&facts).concat().contains("admitted is 0 and not 4"), "it was not emptied");
}

#[test]
fn a_redis_that_is_emptied_after_the_end_has_no_counters_to_compare() {
    let mut facts = fair();
    let emptied = facts.ended.unwrap() + Duration::from_secs(1);
    facts.faults.push(Injected { from: emptied, to: emptied, kind: Kind::StoreEmptied, victim: None });
    facts.stats = Some(of(0));
    assert_eq!(problems(&facts), [""; 0]);
    facts.faults.clear();
    assert!(problems(&facts).concat().contains("the event of the end says"));
}

#[test]
fn a_page_that_was_put_down_as_poison_may_count_as_that() {
    let mut facts = fair();
    dead_letters(&mut facts).push(dead_letter(0, "poison"));
    facts.asks.splice(0..1, (100..104).map(|at| ask(0, 1, at)));
    facts.faults.push(fault(Kind::WorkerKill, Some(1), 100, 105));
    facts.in_hand = 8;
    assert_eq!(problems(&facts), [""; 0]);
    let mut stats = of(4);
    (stats.counts.done, stats.counts.failed) = (1, 3);
    stats.hosts[0].counts = stats.counts;
    stats.reasons.insert("failed:parse".to_owned(), 1);
    set_stats(&mut facts, stats);
    assert_eq!(problems(&facts), [""; 0]);
}

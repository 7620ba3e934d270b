//! Tasks and requests in place of pages.

use serde_json::json;

use super::*;
use crate::faults::ledger::stats::ReportedCounts;

/// Returns a task or a request, with its key in the ledger and its URL in items.
fn unit(number: usize, fate: Fate) -> Page {
    Page { key: format!("task:{number}"), ..page(number, fate) }
}

fn said(number: usize, shown: usize) -> ItemLine {
    ItemLine {
        fields: json!({ "title": format!("Page {shown}"), "n": shown, "asked": number }),
        ..item(number)
    }
}

fn reason(number: usize, reason: &str) -> DeadLetter {
    DeadLetter { url: format!("task:{number}"), reason: reason.to_owned() }
}

fn facts(units: Units, counts: ReportedCounts, reasons: &[(&str, u64)]) -> Facts {
    let mut facts = Facts { units, field: Some("n"), ..fair() };
    let reasons = reasons.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    let stats =
        ReportedStats { status: "finished".to_owned(), counts, pending: 0, reasons, hosts: Vec::new() };
    counts::set_stats(&mut facts, stats);
    facts
}

/// Returns a task of each fate. The missing and silent ones must not be tried again.
fn tasks() -> Facts {
    let fates = [Fate::Good, Fate::Missing, Fate::Flaky(1), Fate::Broken, Fate::Silent];
    let asks = [0, 1, 2, 2, 3, 3, 3, 3, 4];
    let counts = ReportedCounts { admitted: 5, done: 2, failed: 3, ..ReportedCounts::default() };
    Facts {
        pages: fates.into_iter().enumerate().map(|(number, fate)| unit(number, fate)).collect(),
        asks: (100..).zip(asks).map(|(at, page)| ask(page, 1, at)).collect(),
        items: vec![said(0, 0), said(2, 2)],
        dead_letters: Some([1, 3, 4].map(|number| reason(number, "retries")).to_vec()),
        ..facts(Units::Tasks, counts, &[("failed:handler", 3)])
    }
}

/// Returns a request, one that redirects to it, and one that is missing.
fn requests() -> Facts {
    let fates = [Fate::Good, Fate::Redirect(0), Fate::Missing];
    let counts = ReportedCounts { admitted: 3, done: 2, failed: 1, ..ReportedCounts::default() };
    Facts {
        pages: fates.into_iter().enumerate().map(|(number, fate)| unit(number, fate)).collect(),
        asks: vec![ask(0, 1, 100), ask(1, 1, 101), Ask { via: Some(1), ..ask(0, 1, 102) }, ask(2, 1, 103)],
        items: vec![said(0, 0), ItemLine { landed: Some(url(0)), ..said(1, 0) }],
        dead_letters: Some(vec![reason(2, "final")]),
        ..facts(Units::Requests, counts, &[("failed:http", 1)])
    }
}

fn wrong(mut facts: Facts, change: impl FnOnce(&mut Facts)) -> String {
    change(&mut facts);
    problems(&facts).join("\n")
}

#[test]
fn tasks_are_tried_as_often_as_they_say_and_fail_as_their_program_does() {
    assert_eq!(wrong(tasks(), |_| {}), "");
    let found = wrong(tasks(), |facts| facts.asks.push(ask(1, 1, 120)));
    assert!(found.contains("task:1 (Missing): fetched again though no fault hit it"), "{found}");
    let found = wrong(tasks(), |facts| dead_letters(facts)[0].reason = "final".to_owned());
    assert!(found.contains("task:1 (Missing)"), "{found}");
    let found = wrong(tasks(), |facts| facts.asks.retain(|ask| ask.page != 0));
    assert!(found.contains("task:0 (Good): settled early"), "{found}");
    let found = wrong(tasks(), |facts| drop(facts.items.remove(0)));
    assert!(found.contains("task:0 (Good): 0 item(s)"), "{found}");
}

#[test]
fn the_answer_to_a_request_is_its_own_wherever_redirects_led() {
    assert_eq!(wrong(requests(), |_| {}), "");
    let found = wrong(requests(), |facts| drop(facts.items.pop()));
    assert!(found.contains("task:1 (Redirect(0)): 0 item(s)"), "{found}");
    let found = wrong(requests(), |facts| drop(facts.items.remove(0)));
    assert!(found.contains("task:0 (Good): 0 item(s)"), "the other's answer is not its own: {found}");
    let found = wrong(requests(), |facts| facts.asks.retain(|ask| ask.page != 0 || ask.via.is_some()));
    assert!(found.contains("task:0 (Good): settled early"), "{found}");
    let found = wrong(requests(), |facts| facts.items[0].fields["asked"] = 2.into());
    assert!(found.contains("an item of a page that is not on the site"), "another's data: {found}");
}

#[test]
fn a_request_may_be_skipped_before_it_goes_where_a_redirect_leads_while_its_host_is_blocked() {
    let again = |kind| {
        wrong(requests(), |facts| {
            facts.faults.push(fault(kind, None, 102, 110));
            facts.asks.push(ask(1, 1, 111));
        })
    };
    assert_eq!(again(Kind::HostBlocked), "");
    assert!(again(Kind::CrawlPaused).contains("task:1 (Redirect(0)): fetched again"));
}

#[test]
fn a_request_that_had_begun_is_led_to_its_end_in_a_pause_and_no_other_is() {
    let asked = |why, first: u64| {
        wrong(requests(), |facts| {
            facts.quiet.push(Quiet { why, from: seconds(first + 1), to: seconds(first + 10) });
            facts.asks[2].asked = seconds(first + 4);
            facts.asks[1].asked = seconds(first);
            facts.asks.remove(3);
            facts.asks.push(ask(2, 1, 99));
        })
    };
    assert_eq!(asked("paused", 101), "");
    assert!(asked("blocked", 101).contains("1 pages were asked for while blocked"));
}

#[test]
fn what_the_site_found_wrong_is_a_problem() {
    assert_eq!(wrong(tasks(), |facts| facts.complaints.push("another recipe".to_owned())), "another recipe");
}

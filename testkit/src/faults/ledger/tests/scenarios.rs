//! Redirects, pages that never answer, limits, and several sinks.

use serde_json::json;

use super::*;
use crate::faults::ledger::stats::{ReportedCounts, ReportedHost};

/// Returns a crawl of a page, a redirect to it that came second, a redirect to a page that nothing links to, and a page
/// that never answers.
fn linked() -> Facts {
    let fates = [Fate::Good, Fate::Redirect(0), Fate::Redirect(3), Fate::Good, Fate::Silent];
    let pages = fates.into_iter().enumerate().map(|(number, fate)| page(number, fate));
    let asks = [0, 1, 2, 3, 4, 4, 4, 4];
    let counts = ReportedCounts { admitted: 4, done: 2, failed: 1, skipped: 1, ..ReportedCounts::default() };
    let mut facts = Facts {
        pages: pages.collect(),
        field: Some("number"),
        sinks: Sink::ALL.to_vec(),
        asks: (100..).zip(asks).map(|(at, page)| ask(page, 1, at)).collect(),
        items: Sink::ALL.into_iter().filter(|sink| *sink != Sink::Archive).flat_map(items_in).collect(),
        archived: vec![url(0), url(3)],
        dead_letters: Some(vec![dead_letter(4, "retries")]),
        ..fair()
    };
    let reasons = [("failed:timeout".to_owned(), 1), ("skipped:duplicate".to_owned(), 1)].into();
    let hosts = vec![ReportedHost { host: "site".to_owned(), counts }];
    counts::set_stats(
        &mut facts,
        ReportedStats { status: "finished".to_owned(), counts, pending: 0, reasons, hosts },
    );
    facts
}

fn items_in(sink: Sink) -> [ItemLine; 2] {
    let fields = |page: usize| json!({"title": format!("Page {page}"), "number": page});
    [
        ItemLine { fields: fields(0), sink, ..item(0) },
        ItemLine { landed: Some(url(3)), fields: fields(3), sink, ..item(2) },
    ]
}

/// Returns its problems after this change.
fn wrong(change: impl FnOnce(&mut Facts)) -> String {
    let mut facts = linked();
    change(&mut facts);
    problems(&facts).join("\n")
}

#[test]
fn where_a_redirect_led_is_fetched_with_it_and_a_second_way_there_is_a_copy() {
    assert_eq!(wrong(|_| {}), "");
    // The redirect came first, and its target was requested once more.
    assert_eq!(wrong(|facts| facts.asks.push(ask(0, 1, 110))), "");
    let found = wrong(|facts| facts.asks.extend([ask(0, 1, 110), ask(0, 1, 111)]));
    assert!(found.contains("fetched again though no fault hit it"), "{found}");
    let found = wrong(|facts| facts.asks.retain(|ask| ask.page != 1));
    assert!(found.contains("http://site/1 (Redirect(0)): 0 item(s)"), "{found}");
    let found = wrong(|facts| {
        facts.items.retain(|item| item.landed.is_none());
        facts.archived.pop();
    });
    assert!(found.contains("http://site/3 (Good): 0 item(s)"), "{found}");
}

#[test]
fn a_redirect_is_in_flight_until_the_page_it_leads_to_has_answered() {
    let again = |from| {
        wrong(|facts| {
            facts.asks[3].answered = Some(seconds(120));
            facts.asks.extend([ask(2, 1, 130), ask(3, 1, 130)]);
            facts.faults.push(fault(Kind::WorkerKill, Some(1), from, from));
        })
    };
    assert_eq!(again(119), "");
    assert!(again(125).contains("http://site/2 (Redirect(3)): fetched again though no fault hit it"));
}

#[test]
fn an_item_shows_its_page_in_the_fields_of_its_spider() {
    let found = wrong(|facts| facts.items[0].fields["number"] = json!(7));
    assert!(found.contains("http://site/0: an item of page 0 without its title or `number`"), "{found}");
    assert!(wrong(|facts| facts.items[0].fields["title"] = json!("Page 1")).contains("without its title"));
    assert!(wrong(|facts| facts.items[1].landed = Some(url(9))).contains("not on the site"));
}

#[test]
fn what_one_sink_has_all_have() {
    for sink in Sink::ALL.into_iter().filter(|sink| *sink != Sink::Archive) {
        let lacks = |item: &ItemLine| item.sink == sink && item.url == url(0);
        let found = wrong(|facts| facts.items.retain(|item| !lacks(item)));
        assert!(found.contains("http://site/0: stored in"), "{found}");
        assert!(found.ends_with(&format!("and not in {sink:?}")), "{found}");
    }
    let found = wrong(|facts| drop(facts.archived.pop()));
    assert!(found.ends_with("and not in Archive") && found.contains("http://site/3: stored in"), "{found}");
    assert!(wrong(|facts| facts.archived.push(url(9))).contains("archived, and not on the site"));
    let found = wrong(|facts| {
        facts.items.remove(2);
        facts.faults.push(fault(Kind::BrokerGone, None, 150, 151));
    });
    assert_eq!(found, "", "the stream went with the broker's disk");
}

#[test]
fn what_waits_for_postgresql_is_not_asked_for_again_unless_another_fault_meets_it() {
    let again = |faults: &[Injected]| {
        wrong(|facts| {
            facts.asks[0].asked = seconds(50);
            facts.asks[0].answered = Some(seconds(50));
            facts.asks.push(ask(0, 1, 90));
            facts.asks.sort_by_key(|ask| ask.asked);
            facts.asks.retain(|ask| ask.page != 1);
            facts.pages[1].fate = Fate::Redirect(3);
            facts.faults.extend(faults);
        })
    };
    let (stop, kill) = (fault(Kind::DatabaseStop, None, 50, 55), fault(Kind::WorkerKill, Some(1), 58, 58));
    let is_excused = |faults: &[Injected]| !again(faults).contains("http://site/0 (Good): fetched again");
    assert!(!is_excused(&[stop]));
    assert!(!is_excused(&[kill]));
    assert!(is_excused(&[stop, kill]));
}

#[test]
fn a_page_that_never_answers_is_tried_again_and_fails() {
    assert!(wrong(|facts| facts.asks.truncate(7)).contains("settled early"));
    assert!(wrong(|facts| dead_letters(facts)[0].reason = "final".to_owned()).contains("Silent"));
}

/// Returns the problems of a crawl of 6 pages with a limit of 4, when it had these counts and left out `left_out`.
fn limited(
    limit: Limit,
    asked: usize,
    counts: ReportedCounts,
    why: &str,
    left_out: u64,
    forgot: bool,
) -> String {
    let pages = (0..6).map(|number| page(number, Fate::Good));
    let mut facts = Facts {
        pages: pages.collect(),
        limit: Some(limit),
        asks: (0..asked).map(|page| ask(page, 1, 100 + page as u64)).collect(),
        items: (0..asked).map(item).collect(),
        dead_letters: Some(Vec::new()),
        ..fair()
    };
    if forgot {
        facts.faults.push(fault(Kind::StoreFlushed, None, 102, 102));
    }
    let hosts = vec![ReportedHost { host: "site".to_owned(), counts }];
    let reasons = [(why.to_owned(), left_out)].into_iter().filter(|(_, count)| *count > 0).collect();
    counts::set_stats(
        &mut facts,
        ReportedStats { status: "finished".to_owned(), counts, pending: 0, reasons, hosts },
    );
    problems(&facts).join("\n")
}

#[test]
fn a_limit_is_reached_and_never_passed_and_what_it_leaves_out_is_counted() {
    let pages = |done, skipped| ReportedCounts {
        admitted: done + skipped,
        done,
        skipped,
        ..ReportedCounts::default()
    };
    let done = |done, skipped| {
        limited(Limit::Pages(4), done, pages(done as u64, skipped), "skipped:limit", skipped, false)
    };
    assert_eq!(done(4, 2), "");
    assert!(done(5, 1).contains("done, which is limited, is 5 and not 4"));
    assert!(done(3, 3).contains("done, which is limited, is 3 and not 4"));
    assert!(done(4, 0).contains("nothing was left out"));
    let why = "left_out:max_per_host";
    assert_eq!(limited(Limit::PerHost(4), 4, pages(4, 0), why, 2, false), "");
    assert!(
        limited(Limit::PerHost(4), 5, pages(5, 0), why, 1, false)
            .contains("admitted, which is limited, is 5")
    );
    let found = limited(Limit::Pages(4), 5, pages(3, 1), "skipped:limit", 1, true);
    assert_eq!(found, "", "what Redis forgot counts no more");
    let brought_back = |count| limited(Limit::PerHost(2), 6, pages(count, 0), why, 1, true);
    assert_eq!(brought_back(4), "", "messages bring back what Redis forgot");
    assert!(brought_back(5).contains("admitted, which is limited, is 5 and not 0 to 4"));
}

#[test]
fn an_unchanged_page_of_a_recrawl_is_marked_as_such_unless_redis_forgot() {
    let facts = |kind, is_again, change: Option<&str>| {
        let fault = Injected { kind, victim: None, from: seconds(1), to: seconds(2) };
        let items = vec![ItemLine { change: change.map(str::to_owned), ..item(0) }];
        Facts { is_again, items, faults: vec![fault], ..Facts::default() }
    };
    let is_right = |facts: Facts| {
        let problems = Facts { pages: vec![page(0, Fate::Good)], ..facts }.judge().problems;
        !problems.iter().any(|problem| problem.contains("its item says"))
    };
    assert!(is_right(facts(Kind::BrokerGone, true, Some("unchanged"))));
    assert!(!is_right(facts(Kind::BrokerGone, true, Some("new"))));
    assert!(!is_right(facts(Kind::BrokerGone, true, None)));
    assert!(is_right(facts(Kind::StoreEmptied, true, Some("new"))));
    assert!(!is_right(facts(Kind::StoreEmptied, true, Some("changed"))));
    assert!(!is_right(facts(Kind::BrokerGone, false, Some("unchanged"))));
}

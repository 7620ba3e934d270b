//! Tests in which each promise is broken on purpose.

mod counts;
mod scenarios;
mod units;

use super::*;
use crate::faults::scenario::Sink;

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn url(number: usize) -> String {
    format!("http://site/{number}")
}

fn page(number: usize, fate: Fate) -> Page {
    Page { url: url(number), key: url(number), fate }
}

fn ask(page: usize, who: usize, at: u64) -> Ask {
    Ask { page, via: None, who, asked: seconds(at), answered: Some(seconds(at)) }
}

fn item(number: usize) -> ItemLine {
    let (landed, fields) = Default::default();
    let (crawl, change) = (String::new(), None);
    ItemLine { url: url(number), id: number.to_string(), crawl, change, landed, fields, sink: Sink::Files }
}

fn dead_letter(number: usize, reason: &str) -> DeadLetter {
    DeadLetter { url: url(number), reason: reason.to_owned() }
}

fn fault(kind: Kind, victim: Option<usize>, from: u64, to: u64) -> Injected {
    Injected { kind, victim, from: seconds(from), to: seconds(to) }
}

/// Returns a correct crawl of one page of each fate.
fn fair() -> Facts {
    let fates = [Fate::Good, Fate::Missing, Fate::Flaky(1), Fate::Broken];
    let pages = fates.into_iter().enumerate().map(|(number, fate)| page(number, fate));
    let asks = [(0, 1), (1, 1), (2, 2), (2, 1), (3, 1), (3, 1), (3, 2), (3, 1)];
    let stats = counts::of(4);
    Facts {
        pages: pages.collect(),
        sinks: vec![Sink::Files],
        asks: (100..).zip(asks).map(|(at, (page, who))| ask(page, who, at)).collect(),
        items: vec![item(0), item(2)],
        dead_letters: Some(vec![dead_letter(1, "final"), dead_letter(3, "retries")]),
        ends: Some(vec![End { id: "end".to_owned(), crawl: "crawl".to_owned(), stats: stats.clone() }]),
        stats: Some(stats),
        ended: Some(seconds(200)),
        in_hand: 1,
        workers: 2,
        ..Facts::default()
    }
}

fn dead_letters(facts: &mut Facts) -> &mut Vec<DeadLetter> {
    facts.dead_letters.get_or_insert_default()
}

fn problems(facts: &Facts) -> Vec<String> {
    facts.judge().problems
}

/// Returns the only problem of a fair crawl after this change.
fn problem(change: impl FnOnce(&mut Facts)) -> String {
    let mut facts = fair();
    change(&mut facts);
    let problems = problems(&facts);
    assert_eq!(problems.len(), 1, "{problems:#?}");
    problems.concat()
}

#[test]
fn a_fair_crawl_is_without_blame() {
    assert_eq!(problems(&fair()), [""; 0]);
}

#[test]
fn an_item_that_is_missing_is_a_lost_url_of_the_fault_that_hit_its_fetch() {
    let mut facts = fair();
    facts.faults.push(fault(Kind::WorkerKill, Some(1), 100, 100));
    facts.items.remove(0);
    let verdict = facts.judge();
    assert!(verdict.problems.concat().contains("http://site/0 (Good): 0 item(s)"), "{:?}", verdict.problems);
    assert_eq!(verdict.rows[&Some(Kind::WorkerKill)].lost, 1);
}

#[test]
fn a_url_that_was_never_asked_for_is_lost() {
    let found = problem(|facts| {
        facts.pages.push(page(4, Fate::Good));
        counts::set_stats(facts, counts::of(5));
    });
    assert!(found.contains("http://site/4") && found.contains("asked for 0 times"), "{found}");
}

#[test]
fn a_wrong_end_a_second_end_and_a_wrong_reason_are_problems() {
    assert!(problem(|facts| dead_letters(facts)[1].reason = "final".to_owned()).contains("Broken"));
    assert!(problem(|facts| dead_letters(facts).push(dead_letter(0, "retries"))).contains("Good"));
    assert!(problem(|facts| facts.items.push(item(1))).contains("Missing"));
    assert!(problem(|facts| drop(dead_letters(facts).remove(0))).contains("Missing"));
    assert!(problem(|facts| facts.items[1].id = "0".to_owned()).contains("shares its id"));
    assert!(problem(|facts| facts.items.push(ItemLine { id: "x".to_owned(), ..item(0) })).contains("ids"));
    assert!(problem(|facts| facts.items.push(item(9))).contains("not on the site"));
    assert!(problem(|facts| facts.asks.truncate(7)).contains("settled early"));
}

#[test]
fn a_copy_of_an_item_or_a_dead_letter_is_harmless() {
    let mut facts = fair();
    facts.items.push(item(0));
    dead_letters(&mut facts).push(dead_letter(1, "final"));
    assert_eq!(problems(&facts), [""; 0]);
}

#[test]
fn a_crawl_ends_and_not_before_its_last_page() {
    assert!(problem(|facts| facts.ended = None).contains("did not end"));
    assert!(
        problem(|facts| facts.ended = Some(seconds(106))).contains("1 pages were asked for after the end")
    );
}

/// Returns the number of problems and the row of the fault when page 0 is requested again at 110, after a fault.
fn again(kind: Kind, victim: Option<usize>, from: u64, to: u64) -> (usize, Option<Row>) {
    let mut facts = fair();
    facts.asks.push(ask(0, 2, 110));
    facts.faults.push(fault(kind, victim, from, to));
    let verdict = facts.judge();
    (verdict.problems.len(), verdict.rows.get(&Some(kind)).copied())
}

#[test]
fn only_what_was_in_flight_at_a_fault_may_be_fetched_again() {
    let is_blamed = |(problems, row): (usize, Option<Row>)| (problems, row.map_or(0, |row| row.again));
    assert_eq!(is_blamed(again(Kind::WorkerKill, Some(1), 101, 101)), (0, 1));
    assert_eq!(is_blamed(again(Kind::WorkerKill, Some(2), 101, 101)), (1, 0), "another worker's");
    assert_eq!(is_blamed(again(Kind::WorkerKill, Some(1), 105, 105)), (1, 0), "settled long before");
    assert_eq!(is_blamed(again(Kind::WorkerKill, Some(1), 98, 98)), (1, 0), "asked for afterwards");
    assert_eq!(is_blamed(again(Kind::WorkerStop, Some(1), 95, 99)), (0, 1), "asked for as it woke");
    assert_eq!(is_blamed(again(Kind::StoreKill, None, 98, 101)), (0, 1));
    assert_eq!(is_blamed(again(Kind::ProducerKill, Some(1), 100, 101)), (1, 0), "it fetches no page");
    assert_eq!(is_blamed(again(Kind::StoreTruncated, None, 102, 104)), (0, 1), "finished just before");
    assert_eq!(is_blamed(again(Kind::StoreTruncated, None, 108, 109)), (1, 0), "finished long before");
    assert_eq!(is_blamed(again(Kind::StoreFlushed, None, 108, 109)), (0, 1), "all is forgotten");
    assert_eq!(is_blamed(again(Kind::StoreFlushed, None, 111, 112)), (1, 0), "it came too late");
}

#[test]
fn no_more_is_fetched_again_than_a_worker_can_have_in_hand() {
    let found = problem(|facts| {
        facts.asks.extend([ask(0, 2, 110), ask(1, 2, 110)]);
        facts.faults.push(fault(Kind::WorkerKill, Some(1), 101, 101));
    });
    assert!(found.contains("2 fetches were repeated, and only 1"), "{found}");
}

#[test]
fn what_a_fault_hinders_is_in_flight_until_it_can_be_settled() {
    let mut facts = fair();
    facts.asks.push(ask(0, 2, 120));
    facts.faults.push(fault(Kind::StoreStop, None, 101, 108));
    facts.faults.push(fault(Kind::WorkerKill, Some(1), 115, 115));
    let verdict = facts.judge();
    assert_eq!(verdict.problems, [""; 0]);
    assert_eq!(verdict.rows[&Some(Kind::WorkerKill)].again, 1, "the worker took them with it");
}

#[test]
fn what_is_asked_for_while_a_worker_waits_to_try_again_is_settled_after_that() {
    let is_blamed = |from, to| again(Kind::BrokerStop, None, from, to).0 > 0;
    assert!(!is_blamed(94, 97), "three seconds that hindered it, and as long again");
    assert!(is_blamed(96, 97), "it tried again long before");
}

#[test]
fn a_dead_letter_may_go_with_the_broker_that_held_it() {
    let mut facts = fair();
    dead_letters(&mut facts).remove(0);
    facts.faults.push(fault(Kind::BrokerGone, None, 102, 109));
    assert_eq!(problems(&facts), [""; 0]);
    facts.faults[0].kind = Kind::BrokerKill;
    assert_eq!(problems(&facts).len(), 1);
}

#[test]
fn a_page_of_the_early_lane_may_go_with_its_worker_and_with_redis() {
    let mut facts = fair();
    facts.items.remove(0);
    facts.faults.push(fault(Kind::WorkerKillFlushed, Some(1), 101, 101));
    assert_eq!(problems(&facts).len(), 1, "its message was still there");
    facts.pages[0].url = "http://site/news/0".to_owned();
    assert_eq!(problems(&facts), [""; 0]);
    facts.faults[0].victim = Some(2);
    assert_eq!(problems(&facts).len(), 1, "its worker lives");
}

#[test]
fn a_stall_is_the_longest_silence_before_the_next_fault() {
    let mut facts = fair();
    facts.faults = vec![fault(Kind::StoreKill, None, 90, 95), fault(Kind::BrokerKill, None, 107, 108)];
    let rows = facts.judge().rows;
    assert_eq!(rows[&Some(Kind::StoreKill)].stall, seconds(10));
    assert_eq!(rows[&Some(Kind::BrokerKill)].stall, seconds(93), "until the crawl's end");
}

#[test]
fn no_page_is_asked_for_while_a_crawl_is_held() {
    let quiet = |from, to| Quiet { why: "paused", from: seconds(from), to: seconds(to) };
    let found = problem(|facts| facts.quiet.push(quiet(98, 101)));
    assert!(found.contains("1 pages were asked for while paused from 98.0 s"), "{found}");
    let mut facts = fair();
    facts.quiet.extend([quiet(90, 100), quiet(107, 120)]);
    assert_eq!(problems(&facts), [""; 0], "until it goes on, and except for what had begun by then");
}

#[test]
fn a_page_whose_redirects_had_begun_before_a_pause_is_asked_for_to_their_end() {
    let led = |page, via, who, asked| Ask { page, via, who, asked: seconds(asked), answered: None };
    let quiet = Quiet { why: "paused", from: seconds(10), to: seconds(20) };
    let asks = vec![led(0, None, 1, 9), led(1, Some(0), 1, 13), led(2, Some(1), 1, 16)];
    let late = |asks: &[Ask], why| {
        let facts = Facts { asks: asks.to_vec(), quiet: vec![Quiet { why, ..quiet }], ..fair() };
        let mut verdict = Judgement::default();
        facts.judge_orders(&mut verdict);
        verdict.problems.iter().filter(|problem| problem.contains("were asked for")).count()
    };
    assert_eq!((late(&asks, "paused"), late(&asks, "blocked")), (0, 1));
    let plain = [led(0, None, 1, 9), led(2, None, 1, 13)];
    let mut facts = Facts { asks: plain.to_vec(), quiet: vec![quiet], ..fair() };
    assert_eq!(problems(&facts).iter().filter(|problem| problem.contains("while paused")).count(), 1);
    facts.pages[0].fate = Fate::Redirect(2);
    assert_eq!(problems(&facts).iter().filter(|problem| problem.contains("while paused")).count(), 0);
    let other = [asks[0], led(1, Some(0), 2, 13), led(2, Some(1), 2, 16)];
    assert_eq!((late(&asks[1..], "paused"), late(&other, "paused")), (1, 1), "begun in it, or by another");
}

#[test]
fn a_dead_letter_that_is_sent_again_is_fetched_unless_redis_forgot_the_order() {
    let replayed = |kind| {
        let mut facts = fair();
        facts.replays.push(Replay { url: url(1), at: seconds(110) });
        facts.faults.push(fault(kind, None, 110, 111));
        facts
    };
    let found = problems(&replayed(Kind::DeadLettersReplayed)).concat();
    assert!(found.contains("http://site/1: sent again at 110.0 s, and not asked for"), "{found}");
    assert_eq!(problems(&replayed(Kind::StoreTruncated)), [""; 0]);
    let mut facts = replayed(Kind::DeadLettersReplayed);
    facts.asks.push(ask(1, 1, 112));
    let verdict = facts.judge();
    assert_eq!(verdict.problems, [""; 0]);
    assert_eq!(verdict.rows[&Some(Kind::DeadLettersReplayed)].again, 1);
    facts.asks.push(ask(1, 1, 113));
    assert_eq!(problems(&facts).len(), 1, "once is enough");
}

#[test]
fn a_page_that_was_not_answered_may_have_given_way_to_another_crawl() {
    let again = |answered, from| {
        let mut facts = fair();
        facts.asks[0].answered = answered;
        facts.asks.push(ask(0, 2, 160));
        facts.faults.push(fault(Kind::OtherStuck, None, from, from + 3));
        problems(&facts).len()
    };
    assert_eq!(again(None, 102), 0);
    assert_eq!(again(None, 110), 1, "the other crawl began later");
    assert_eq!(again(Some(seconds(101)), 102), 1, "it was answered");
}

#[test]
fn a_page_that_was_skipped_between_two_tries_has_all_its_tries_again() {
    let mut facts = fair();
    facts.asks.push(ask(3, 1, 120));
    facts.faults.push(fault(Kind::HostBlocked, None, 105, 110));
    assert_eq!(problems(&facts), [""; 0]);
    facts.asks.push(ask(1, 1, 120));
    assert_eq!(problems(&facts).len(), 1, "a page with one try was not skipped after it");
}

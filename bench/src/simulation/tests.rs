use std::collections::BTreeMap;
use std::time::Duration;

use trawl_common::politeness::rate::{Rate, Unit};
use trawl_common::politeness::waiting::FIRST_LOOK;

use super::*;

fn small() -> Scenario {
    Scenario { workers: 3, hosts: 300, urls: 6_000, backlog: 2_000, ..Scenario::default() }
}

fn seen(scenario: &Scenario) -> (Report, Vec<Seen>) {
    let mut all = Vec::new();
    let report = run(scenario, &mut |seen| all.push(seen));
    (report, all)
}

#[test]
fn every_url_ends_exactly_once() {
    let ttl = Some(Duration::from_secs(120));
    for scenario in [small(), Scenario { order: Order::Sites, ..small() }, Scenario { ttl, ..small() }] {
        let (report, all) = seen(&scenario);
        let mut ended = vec![0; (report.done + report.expired) as usize];
        for seen in all {
            if let Seen::Ended { url, .. } = seen {
                ended[url as usize] += 1;
            }
        }
        assert_eq!(ended.len(), web::urls(&scenario).len());
        assert!(ended.iter().all(|&times| times == 1));
        assert_eq!(report.expired > 0, scenario.ttl.is_some());
    }
}

#[test]
fn no_host_is_asked_faster_than_its_rate() {
    let busy = Scenario { workers: 1, concurrency: 4, ..small() };
    let fast = Scenario { rate: Rate::Limited { count: 5, per: Unit::Second }, ..small() };
    for scenario in [small(), busy, fast] {
        let interval = scenario.pace().interval.as_micros() as u64;
        let mut asked: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for seen in seen(&scenario).1 {
            if let Seen::Asked { host, at } = seen {
                asked.entry(host).or_default().push(at);
            }
        }
        for instants in asked.values() {
            // Late requests delay those after them, which catch up by an eighth of the interval each. Timers have a
            // resolution of 2 ms.
            let late = interval / 8 + 960_000;
            for (nth, first) in instants.iter().enumerate() {
                for (more, last) in instants[nth..].iter().enumerate().take(100) {
                    let (passed, due) = (last - first, more as u64 * interval);
                    assert!(
                        passed + late >= due && (passed + 2_000) * 8 >= due * 7,
                        "{more} within {passed}"
                    );
                }
            }
        }
    }
}

#[test]
fn where_fetch_slots_are_free_requests_are_an_interval_apart_but_for_a_sixth() {
    let scenario = Scenario { workers: 20, ..small() };
    let interval = scenario.pace().interval.as_micros() as u64;
    let mut before: BTreeMap<u32, u64> = BTreeMap::new();
    for seen in seen(&scenario).1 {
        if let Seen::Asked { host, at } = seen {
            let apart = before.insert(host, at).map_or(interval, |before| at - before);
            assert!(apart * 6 >= interval * 5, "{apart}");
        }
    }
}

#[test]
fn a_host_with_urls_enough_is_never_idle() {
    let (report, _) = seen(&Scenario { hosts: 1, urls: 3_000, ..small() });
    assert!((2_998.0..3_040.0).contains(&report.end), "{}", report.end);
}

#[test]
fn the_number_of_hops_is_logarithmic_in_the_wait() {
    for seconds in [1_000, 4_000, 16_000] {
        let (report, _) = seen(&Scenario { hosts: 1, urls: seconds, backlog: u64::MAX, ..small() });
        let looks = (f64::from(seconds) / FIRST_LOOK.as_secs_f64()).log2().ceil() + 1.0;
        // From one look to the next a URL is on the ladder at most a dozen times.
        assert!(report.hops_max as f64 <= 12.0 * looks, "{seconds} s: {}", report.hops_max);
    }
}

#[test]
fn the_same_seed_gives_the_same_report_and_another_one_another() {
    let report = |seed| serde_json::to_string(&seen(&Scenario { seed, ..small() }).0).unwrap();
    assert_eq!(report(1), report(1));
    assert_ne!(report(1), report(2));
}

#[test]
fn slow_hosts_leave_fetch_slots_idle_and_many_hosts_do_not() {
    let few = seen(&Scenario { hosts: 20, ..small() }).0;
    let many = seen(&Scenario { workers: 1, concurrency: 4, hosts: 3_000, urls: 9_000, ..small() }).0;
    assert!(few.idle > 0.5, "{}", few.idle);
    assert!(many.idle < 0.1, "{}", many.idle);
}

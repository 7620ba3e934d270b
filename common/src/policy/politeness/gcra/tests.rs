use proptest::prelude::*;

use super::*;

const START: u64 = 1_700_000_000_000_000;
const SECOND: u64 = 1_000_000;

/// A pace of `count` requests a second, with no other limit.
fn per_second(count: u32) -> Pace {
    Pace { interval: Duration::from_micros(1_000_000 / u64::from(count)), ..Pace::UNLIMITED }
}

/// A pace of `concurrency` requests at once, with no other limit.
fn at_once(concurrency: u32) -> Pace {
    Pace { concurrency, ..Pace::UNLIMITED }
}

fn request(pace: Pace) -> SlotRequest {
    SlotRequest {
        pace,
        held: None,
        standing: Standing::New,
        deadline: None,
        token: 0,
        lapse: Duration::from_secs(30),
    }
}

fn seconds(count: u64) -> u64 {
    START + count * SECOND
}

fn ms(instant: u64) -> UnixMs {
    UnixMs(instant.div_ceil(1_000))
}

/// Returns a position in the waitlist whose slot is `after` seconds after `now`.
fn waitlisted(now: u64, after: u64) -> Slot {
    Slot::Later { wait: Duration::from_secs(after) - LEAD, turn: ms(now + after * SECOND) }
}

/// Milliseconds until the slot.
fn wait(slot: Slot) -> u128 {
    match slot {
        Slot::Now => 0,
        Slot::Reserved { wait, .. } => wait.as_millis(),
        other => panic!("not reserved: {other:?}"),
    }
}

fn waits(schedule: &mut Schedule, pace: Pace, count: usize) -> Vec<u128> {
    (0..count).map(|_| wait(schedule.reserve(&request(pace), START))).collect()
}

#[test]
fn slots_are_an_interval_apart() {
    assert_eq!(waits(&mut Schedule::default(), per_second(5), 4), [0, 200, 400, 600]);
}

#[test]
fn a_burst_goes_at_once_and_then_the_rate_holds() {
    let pace = Pace { burst: 3, ..per_second(5) };
    assert_eq!(waits(&mut Schedule::default(), pace, 5), [0, 0, 0, 200, 400]);
}

#[test]
fn a_delay_only_slows() {
    let pace = Pace { burst: 5, ..per_second(1) };
    assert_eq!(pace.slowed(Duration::from_millis(10)), pace);
    let slowed = pace.slowed(Duration::from_secs(9));
    assert_eq!((slowed.interval, slowed.burst), (Duration::from_secs(9), 1));
}

#[test]
fn requests_beyond_the_horizon_join_the_waitlist_and_come_back_a_little_before_their_slot() {
    let mut schedule = Schedule::default();
    waits(&mut schedule, per_second(1), 31);
    let before = schedule.next;
    for turn in 31..40 {
        assert_eq!(schedule.reserve(&request(per_second(1)), START), waitlisted(START, turn));
    }
    assert_eq!(schedule.next, before, "a backlog that vanishes must block nobody");
}

#[test]
fn a_waitlist_whose_urls_stay_away_is_forgotten() {
    let mut schedule = Schedule::default();
    for _ in 0..10_000 {
        schedule.reserve(&request(per_second(1)), START);
    }
    // They were all cancelled, those with a slot as well.
    assert_eq!(schedule.reserve(&request(per_second(1)), seconds(60)), Slot::Now);
    for _ in 0..30 {
        wait(schedule.reserve(&request(per_second(1)), seconds(60)));
    }
    assert_eq!(schedule.reserve(&request(per_second(1)), seconds(60)), waitlisted(seconds(60), 31));
}

#[test]
fn a_request_that_comes_back_early_keeps_its_place_in_a_waitlist_that_is_still_there() {
    let mut schedule = Schedule::default();
    let later: Vec<Slot> = (0..200).map(|_| schedule.reserve(&request(per_second(1)), START)).collect();
    let Slot::Later { turn, .. } = later[150] else { panic!("{:?}", later[150]) };
    let back = SlotRequest { standing: Standing::Waitlisted(turn), ..request(per_second(1)) };
    let before = schedule.clone();
    assert_eq!(schedule.reserve(&back, seconds(10)), waitlisted(seconds(10), 140));
    let hopeless = SlotRequest { deadline: Some(ms(seconds(100))), ..back };
    assert_eq!(schedule.reserve(&hopeless, seconds(10)), Slot::TooLate);
    assert_eq!(schedule, before);
    // All others were cancelled, those with a slot as well.
    assert_eq!(schedule.reserve(&back, seconds(60)), Slot::Now);
}

#[test]
fn a_request_off_the_waitlist_learns_when_its_slot_may_be_reserved() {
    let mut schedule = Schedule::default();
    for _ in 0..200 {
        schedule.reserve(&request(per_second(1)), START);
    }
    let before = schedule.clone();
    let aside = SlotRequest { standing: Standing::Aside, ..request(per_second(1)) };
    let Slot::Later { wait, .. } = schedule.reserve(&aside, START) else { panic!("reserved") };
    assert_eq!((wait, schedule == before), (Duration::from_secs(1), true));
    // The URLs in the waitlist come back later than it does.
    let slot = schedule.reserve(&aside, START + micros(wait));
    assert_eq!(slot, Slot::Reserved { wait: HORIZON, at: ms(seconds(31)) });
}

#[test]
fn a_host_whose_urls_come_back_in_time_is_never_idle_and_each_comes_back_once() {
    let pace = per_second(1);
    let mut schedule = Schedule::default();
    let mut asked: Vec<u64> = Vec::new();
    // When each asks next, and how often it has.
    let mut asks: std::collections::BTreeSet<(u64, u32, usize)> =
        (0..2_000).map(|url| (START, 1, url)).collect();
    let mut most = 0;
    while let Some((now, count, url)) = asks.pop_first() {
        most = most.max(count);
        match schedule.reserve(&request(pace), now) {
            Slot::Now => asked.push(now),
            Slot::Reserved { wait, .. } => asked.push(now + micros(wait)),
            Slot::Later { wait, .. } => drop(asks.insert((now + micros(wait), count + 1, url))),
            other => panic!("{other:?}"),
        }
    }
    asked.sort_unstable();
    assert!(asked.windows(2).all(|pair| pair[1] - pair[0] == SECOND));
    assert_eq!((asked.len(), most), (2_000, 2));
}

#[test]
fn a_held_slot_is_honoured_in_time_and_void_after() {
    let mut schedule = Schedule::default();
    waits(&mut schedule, per_second(1), 1);
    let Slot::Reserved { at, .. } = schedule.reserve(&request(per_second(1)), START) else { panic!() };
    let held = SlotRequest { held: Some(at), ..request(per_second(1)) };
    let comes = |after| {
        let mut schedule = schedule.clone();
        let slot = schedule.reserve(&held, START + after);
        (wait(slot), schedule.next - schedule.next.min(seconds(2)))
    };
    assert_eq!(comes(SECOND / 2), (500, 0));
    assert_eq!(comes(998_500), (0, 0), "a timer is no finer than this");
    assert_eq!(comes(1_500_000), (0, 0), "an honoured slot reserves nothing anew");
    assert_eq!(comes(1_501_000), (499, SECOND));
}

#[test]
fn a_late_request_delays_those_after_it_until_they_have_caught_up() {
    let pace = per_second(1);
    let mut schedule = Schedule::default();
    let slots: Vec<u64> =
        (0..8).map(|_| START + 1_000 * wait(schedule.reserve(&request(pace), START)) as u64).collect();
    let held = |slot| SlotRequest { held: Some(ms(slot)), ..request(pace) };
    let mut asked = vec![START, slots[1] + 150_000];
    assert_eq!(schedule.reserve(&held(slots[1]), asked[1]), Slot::Now);
    for &slot in &slots[2..] {
        let waits = match schedule.reserve(&held(slot), slot) {
            Slot::Reserved { wait, at } => {
                let then = slot + micros(wait);
                assert_eq!(
                    schedule.reserve(&SlotRequest { held: Some(at), ..request(pace) }, then),
                    Slot::Now
                );
                then
            }
            slot_or_not => {
                assert_eq!(slot_or_not, Slot::Now);
                slot
            }
        };
        asked.push(waits);
    }
    let gaps: Vec<u64> = asked.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000).collect();
    assert_eq!(gaps, [1_150, 937, 937, 975, 1_000, 1_000, 1_000]);
}

/// Whatever delays requests between their grants and their sending, up to a fifth of the interval.
#[test]
fn no_gap_between_requests_as_they_are_sent_is_too_short_and_the_rate_is_kept() {
    let pace = per_second(5);
    let (interval, usual) = (micros(pace.interval), micros(pace.send_delay()));
    let mut schedule = Schedule::default();
    let mut sent: Vec<u64> = Vec::new();
    let mut asks: std::collections::BTreeSet<(u64, u64, Option<UnixMs>)> =
        (0..100).map(|url| (START, url, None)).collect();
    while let Some((now, url, held)) = asks.pop_first() {
        match schedule.reserve(&SlotRequest { held, ..request(pace) }, now) {
            Slot::Now => {
                let delay = 7_919 * url % (interval / 5);
                sent.push(now + delay.max(usual));
                if let Some(after) = pace.next_after(Duration::from_micros(delay.max(usual))) {
                    schedule.sent_late(after, sent[sent.len() - 1]);
                }
            }
            Slot::Reserved { wait, at } => drop(asks.insert((now + micros(wait), url, Some(at)))),
            other => panic!("{other:?}"),
        }
    }
    let gaps: Vec<u64> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|&gap| gap >= interval * 85 / 100), "{gaps:?}");
    let took = sent[99] - sent[0];
    assert!((98 * interval..=102 * interval).contains(&took), "{took}");
}

#[test]
fn a_rate_finer_than_any_timer_is_reached_and_kept_over_a_quantum() {
    for rate in [100, 300, 500, 1_000, 5_000] {
        let pace = per_second(rate);
        let mut schedule = Schedule::default();
        let mut asked: Vec<u64> = Vec::new();
        let mut asks: std::collections::BTreeSet<(u64, u64, Option<UnixMs>)> =
            (0..u64::from(2 * rate)).map(|url| (START, url, None)).collect();
        while let Some((now, url, held)) = asks.pop_first() {
            match schedule.reserve(&SlotRequest { held, ..request(pace) }, now) {
                Slot::Now => asked.push(now),
                // Some are on time, some up to 40 ms late.
                Slot::Reserved { wait, at } => {
                    asks.insert((now + micros(wait) + 7_919 * url % 40_000, url, Some(at)));
                }
                other => panic!("{other:?}"),
            }
        }
        let took = (asked[asked.len() - 1] - START) as f64 / SECOND as f64;
        assert!(took <= 2.0 * 1.05, "{rate}/s: {took} s for 2");
        let allowed = (u64::from(rate) * micros(QUANTUM) / SECOND) as usize + 1;
        for start in 0..asked.len() {
            let within = asked[start..].iter().take_while(|&&at| at < asked[start] + micros(QUANTUM)).count();
            assert!(within <= 2 * allowed, "{rate}/s: {within} in a quantum");
        }
    }
}

#[test]
fn slots_of_the_past_do_not_burst() {
    let mut schedule = Schedule::default();
    let slots: Vec<UnixMs> = (0..20).map(|number| ms(seconds(number))).collect();
    waits(&mut schedule, per_second(1), 20);
    let after = seconds(600);
    let held = |slot| SlotRequest { held: Some(slot), ..request(per_second(1)) };
    let waits: Vec<_> = slots.iter().map(|slot| wait(schedule.reserve(&held(*slot), after))).collect();
    assert_eq!(waits, (0..20).map(|number| number * 1_000).collect::<Vec<_>>());
}

#[test]
fn a_request_that_would_be_sent_after_its_deadline_reserves_nothing() {
    let mut schedule = Schedule::default();
    let until = |deadline| SlotRequest { deadline: Some(ms(deadline)), ..request(per_second(1)) };
    waits(&mut schedule, per_second(1), 10);
    let before = schedule.clone();
    assert_eq!(schedule.reserve(&until(seconds(9)), START), Slot::TooLate);
    assert_eq!(schedule, before);
    assert_eq!(wait(schedule.reserve(&until(seconds(10)), START)), 10_000);
    waits(&mut schedule, per_second(1), 20);
    schedule.reserve(&request(per_second(1)), START);
    let before = schedule.clone();
    let later = schedule.reserve(&until(seconds(31)), START);
    assert_eq!(later, waitlisted(START, 32), "the waitlist may be gone");
    assert_eq!(schedule, before);
}

#[test]
fn no_more_requests_are_in_flight_than_the_pace_allows() {
    let mut schedule = Schedule::default();
    let token = |token| SlotRequest { token, ..request(at_once(2)) };
    assert_eq!(schedule.reserve(&token(1), START), Slot::Now);
    assert_eq!(schedule.reserve(&token(2), START), Slot::Now);
    assert_eq!(wait(schedule.reserve(&token(3), START)), 5);
    assert_eq!(schedule.reserve(&token(2), START), Slot::Now, "it has its place already");
    schedule.leave(1, true, START + 1_000);
    assert_eq!(schedule.reserve(&token(3), START + 1_000), Slot::Now);
    assert!(wait(schedule.reserve(&token(4), START + 1_000)) > 0);
    let much_later = seconds(31);
    assert_eq!(schedule.reserve(&token(4), much_later), Slot::Now, "whoever had the in_flight is gone");
}

#[test]
fn a_request_at_the_limit_of_a_silent_host_looks_ever_less_often() {
    let mut schedule = Schedule::default();
    let token = |token| SlotRequest { token, ..request(at_once(2)) };
    for number in 0..2 {
        assert_eq!(schedule.reserve(&token(number), 0), Slot::Now);
    }
    let mut looks = Vec::new();
    let mut now = 0;
    while now < 20_000_000 {
        let Slot::Reserved { wait, .. } = schedule.reserve(&token(9), now) else { panic!("at {now}") };
        looks.push(now);
        now += wait.as_micros() as u64;
    }
    assert!(looks.len() < 30, "{looks:?}");
}

#[test]
fn a_slow_host_is_asked_as_often_as_its_limit_in_flight_allows() {
    let pace = Pace { concurrency: 4, ..per_second(1) };
    let mut schedule = Schedule { latency: 40 * SECOND, ..Schedule::default() };
    assert_eq!(waits(&mut schedule, pace, 3), [0, 10_000, 20_000]);
}

#[test]
fn a_back_off_holds_for_every_request() {
    let mut schedule = Schedule::default();
    waits(&mut schedule, per_second(1), 1);
    let Slot::Reserved { at, .. } = schedule.reserve(&request(per_second(1)), START) else { panic!() };
    let until = schedule.push_back(&terms(Some(20)), START);
    assert_eq!(until, seconds(20));
    let held = SlotRequest { held: Some(at), ..request(per_second(1)) };
    assert_eq!(wait(schedule.reserve(&held, seconds(1))), 19_000, "a slot reserved before is void");
    assert_eq!(wait(schedule.reserve(&request(per_second(1)), seconds(1))), 20_000);
    let unlimited = schedule.reserve(&request(Pace::UNLIMITED), seconds(1));
    assert_eq!(wait(unlimited), 19_000);
}

/// Returns terms for `asked`, or for 30 s at first and an hour at most.
fn terms(asked: Option<u64>) -> BackoffTerms {
    BackoffTerms {
        asked: asked.map(Duration::from_secs),
        base: Duration::from_secs(30),
        jitter: 0.0,
        most: Duration::from_secs(3_600),
    }
}

#[test]
fn a_back_off_doubles_each_time_in_a_row_up_to_its_limit_and_is_forgiven_after_a_calm_time() {
    let mut schedule = Schedule::default();
    let mut now = START;
    let mut waits = Vec::new();
    for _ in 0..16 {
        let until = schedule.push_back(&terms(None), now);
        waits.push((until - now) / SECOND);
        now = until + 1;
    }
    assert_eq!(waits[..4], [30, 60, 120, 240]);
    assert_eq!(waits[7..], [3_600; 9]);
    now += micros(terms(None).most);
    assert_eq!(schedule.push_back(&terms(None), now) - now, 30 * SECOND);
    let stretched =
        Schedule::default().push_back(&BackoffTerms { jitter: 1.0, ..terms(None) }, START) - START;
    assert_eq!(stretched, 45 * SECOND);
}

#[test]
fn an_answer_ends_a_streak_of_refusals() {
    let mut schedule = Schedule::default();
    let mut now = START;
    for _ in 0..20 {
        let until = schedule.push_back(&terms(None), now);
        assert_eq!(until - now, 30 * SECOND);
        // A request in flight at the same time says nothing about later ones.
        schedule.leave(7, true, now + 1);
        assert_eq!(schedule.backoff.strikes, 1);
        now = until + SECOND;
        schedule.leave(8, true, now);
    }
    let until = schedule.push_back(&terms(None), now);
    schedule.leave(9, false, until);
    assert_eq!(schedule.push_back(&terms(None), until) - until, 60 * SECOND);
}

#[test]
fn a_retry_after_is_kept_and_doubles_nothing() {
    let mut schedule = Schedule::default();
    let mut now = START;
    for _ in 0..20 {
        let until = schedule.push_back(&terms(Some(2)), now);
        assert_eq!(until - now, 2 * SECOND);
        now = until;
    }
    assert_eq!(schedule.push_back(&terms(None), now) - now, 30 * SECOND);
    assert_eq!(Schedule::default().push_back(&terms(Some(86_400)), START), seconds(3_600));
}

#[test]
fn requests_in_flight_together_count_as_one_refusal() {
    let mut schedule = Schedule::default();
    let mut push = |asked: Option<u64>, now| schedule.push_back(&terms(asked), now);
    assert_eq!(push(None, START), seconds(30));
    assert_eq!(push(None, seconds(1)), seconds(30));
    assert_eq!(push(Some(5), seconds(1)), seconds(30), "it cannot be shortened");
    assert_eq!(push(Some(100), seconds(1)), seconds(101));
    assert_eq!(push(Some(u64::MAX), seconds(2)), seconds(3_602));
    assert_eq!(schedule.backoff.strikes, 1);
}

#[test]
fn a_blocked_host_is_not_asked_at_all() {
    let mut schedule = Schedule { is_blocked: true, ..Schedule::default() };
    let held = SlotRequest { held: Some(ms(START)), ..request(Pace::UNLIMITED) };
    assert_eq!(schedule.reserve(&held, START), Slot::Blocked);
    assert!(!schedule.is_past(u64::MAX));
}

#[test]
fn a_schedule_is_past_when_it_answers_as_a_new_one_does() {
    let mut schedule = Schedule::default();
    assert!(schedule.is_past(START));
    waits(&mut schedule, per_second(1), 2);
    assert!(!schedule.is_past(seconds(1)));
    assert!(schedule.is_past(seconds(2)));
    schedule.push_back(&terms(None), START);
    assert!(!schedule.is_past(seconds(31)), "how often it asked is remembered for a while");
    assert!(schedule.is_past(seconds(330)));
}

proptest! {
    #[test]
    fn no_window_holds_more_than_the_rate_and_the_burst(
        count in 1u32..50, burst in 1u32..5, gaps in prop::collection::vec(0u64..3_000_000, 1..200)
    ) {
        let pace = Pace { burst, ..per_second(count) };
        let mut schedule = Schedule::default();
        let mut now = START;
        let mut slots = Vec::new();
        for gap in gaps {
            now += gap;
            match schedule.reserve(&request(pace), now) {
                Slot::Now => slots.push(now),
                Slot::Reserved { wait, .. } => slots.push(now + micros(wait)),
                _ => {}
            }
        }
        prop_assert!(slots.is_sorted());
        let width = burst as usize + 1;
        for window in slots.windows(width) {
            prop_assert!(window[width - 1] - window[0] >= micros(pace.interval) - 1);
        }
    }

    #[test]
    fn no_request_is_sent_during_a_back_off_and_the_limit_in_flight_is_never_exceeded(
        steps in prop::collection::vec((0u64..2_000_000, 0u8..4, 0u64..6), 1..300)
    ) {
        let pace = Pace { concurrency: 3, ..per_second(4) };
        let mut schedule = Schedule::default();
        let mut now = START;
        for (gap, what, token) in steps {
            now += gap;
            match what {
                0 => schedule.leave(token, token % 2 == 0, now),
                1 => drop(schedule.push_back(&BackoffTerms { jitter: 0.5, ..terms(Some(token)) }, now)),
                _ => {
                    let slot = schedule.reserve(&SlotRequest { token, ..request(pace) }, now);
                    if slot == Slot::Now {
                        prop_assert!(now >= schedule.backoff.until);
                    }
                }
            }
            let under_way = schedule.in_flight.iter().filter(|place| place.until > now).count();
            prop_assert!(under_way <= 3);
        }
    }
}

#[test]
fn a_slot_is_good_for_a_sixteenth_of_the_interval_but_no_shorter_than_the_precision_of_timers() {
    assert_eq!(per_second(1).grace(), Duration::from_micros(62_500));
    assert_eq!(per_second(10).grace(), Duration::from_millis(15));
    assert_eq!(per_second(500).grace(), QUANTUM);
    assert_eq!(Pace::UNLIMITED.grace(), Duration::from_secs(1));
}

#[test]
fn a_schedule_goes_back_with_the_clock() {
    let mut schedule = Schedule::default();
    let pace = Pace { concurrency: 2, ..per_second(1) };
    let other = SlotRequest { token: 1, ..request(pace) };
    assert_eq!(schedule.reserve(&request(pace), START), Slot::Now);
    assert_eq!(wait(schedule.reserve(&other, START)), 1_000);
    let earlier = START - 3_600 * SECOND;
    assert_eq!(wait(schedule.reserve(&other, earlier)), 2_000);
    assert_eq!(schedule.in_flight[0].since, earlier);
    schedule.push_back(&terms(Some(20)), START);
    assert_eq!(wait(schedule.reserve(&other, earlier)), 20_000);
    assert_eq!(schedule.backoff.since, earlier);
}

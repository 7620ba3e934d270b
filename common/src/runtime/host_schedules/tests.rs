use std::collections::HashMap;
use std::net::Ipv4Addr;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::time::{Instant, advance};

use super::*;
use crate::politeness::gcra::Schedule;
use crate::politeness::rate::{Rate, Unit};
use crate::politeness::robots::{RobotsFile, RobotsKey};
use crate::ports::{Ended, ErrorKind, InFlightRequest, RobotsEntry, SentLate};
use crate::web::url::CanonicalUrl;

/// Schedules in memory, in the test's time.
struct Memory {
    /// By the clock that no test turns, and by the one that it does.
    began: UnixMs,
    begun: Instant,
    schedules: Mutex<HashMap<HostKey, Schedule>>,
    /// Number of answers left out of each reply.
    short_by: usize,
    /// Number of calls that fail before one is answered.
    away: Mutex<u32>,
}

impl Memory {
    /// The time in microseconds, as in schedules.
    fn now(&self) -> u64 {
        self.began.0 * 1_000 + self.begun.elapsed().as_micros() as u64
    }
}

#[async_trait]
impl Hosts for Memory {
    async fn reserve(&self, asks: &[HostSlotRequest]) -> Result<Vec<Slot>> {
        let away = &mut *self.away.lock();
        if *away > 0 {
            *away -= 1;
            return Err(Error::new(ErrorKind::Unavailable, "away"));
        }
        let now = self.now();
        let mut schedules = self.schedules.lock();
        let reserve =
            |ask: &HostSlotRequest| schedules.entry(ask.key.clone()).or_default().reserve(&ask.request, now);
        Ok(asks[..asks.len() - self.short_by].iter().map(reserve).collect())
    }

    async fn stay(&self, _visits: &[InFlightRequest], _lapse: Duration) -> Result<()> {
        Ok(())
    }

    async fn leave(&self, _ended: &[Ended]) -> Result<()> {
        Ok(())
    }

    async fn sent_late(&self, sent: &[SentLate]) -> Result<()> {
        let now = self.now();
        let mut schedules = self.schedules.lock();
        for SentLate { key, next_after } in sent {
            schedules.entry(key.clone()).or_default().sent_late(*next_after, now);
        }
        Ok(())
    }

    async fn push_back(&self, _key: &HostKey, _refusal: &BackoffRequest) -> Result<UnixMs> {
        Err(Error::new(ErrorKind::Refused, "no permission"))
    }

    async fn robots(&self, _key: &RobotsKey, _lease: Duration) -> Result<RobotsEntry> {
        Ok(RobotsEntry::Awaited)
    }

    async fn keep_robots(&self, _: &RobotsKey, _: &RobotsFile, _: Duration) -> Result<()> {
        Ok(())
    }

    async fn give_up_robots(&self, _key: &RobotsKey) -> Result<()> {
        Ok(())
    }
}

fn memory() -> Memory {
    Memory {
        began: UnixMs::now(),
        begun: Instant::now(),
        schedules: Mutex::default(),
        short_by: 0,
        away: Mutex::default(),
    }
}

fn schedules(hosts: Memory) -> HostSchedules {
    let (health, in_flight, ceiling) = Default::default();
    let addresses = Arc::new(AddressRate::new(Rate::Limited { count: 1, per: Unit::Second }));
    HostSchedules { hosts: Arc::new(hosts), health, in_flight, lapse: NEAR, ceiling, addresses }
}

/// A request to a host that is asked once a second.
fn request(host: &str) -> HostRequest {
    let url: CanonicalUrl = format!("http://{host}/").parse().unwrap();
    HostRequest::new(&Politeness::default().host_policy(&url.host()))
}

#[tokio::test(start_paused = true)]
async fn a_reply_with_too_few_slots_is_an_error_and_grants_nothing() {
    let schedules = schedules(Memory { short_by: 1, ..memory() });
    for hosts in [&["a.example", "b.example"][..], &["a.example"]] {
        let requests: Vec<HostRequest> = hosts.iter().map(|host| request(host)).collect();
        assert_eq!(schedules.ask_hosts(&requests).await.unwrap_err().kind, ErrorKind::Corrupt);
    }
    let one = schedules.ask(&mut request("a.example"), &[], NEAR).await;
    assert_eq!(one.unwrap_err().kind, ErrorKind::Corrupt);
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_waited_for_and_a_refusal_is_not() {
    let schedules = schedules(Memory { away: Mutex::new(5), ..memory() });
    assert!(matches!(schedules.ask(&mut request("a.example"), &[], NEAR).await, Ok(Decision::Go(_))));
    let failure = Failure::new(crate::frontier::outcome::Class::Http, "429");
    let key = request("a.example").key;
    let pushed = schedules.push_back(&key, &Politeness::default(), &failure, None).await;
    assert_eq!(pushed.unwrap_err().kind, ErrorKind::Refused);
}

#[tokio::test(start_paused = true)]
async fn what_waited_elsewhere_until_its_slot_had_passed_asks_its_host_once_more_and_nothing_else() {
    let schedules = schedules(memory());
    let mut first = request("a.example");
    let Decision::Go(permit) = schedules.ask_host(&mut first).await.unwrap() else { panic!() };
    let waits = async {
        advance(Duration::from_millis(400)).await;
        Ok(None)
    };
    let decision = schedules.wait_elsewhere(&mut first, permit, waits).await.unwrap();
    let Decision::At { wait, slot } = decision else { panic!("{decision:?}") };
    assert_eq!((first.slot, first.waits_for_host_only), (Some(slot), true));
    advance(wait).await;
    let Decision::Go(permit) = schedules.ask_host(&mut first).await.unwrap() else { panic!() };
    let never = async { unreachable!("it has waited") };
    let decision = schedules.wait_elsewhere(&mut first, permit, never).await.unwrap();
    assert!(matches!(decision, Decision::Go(_)) && !first.waits_for_host_only);
}

#[tokio::test(start_paused = true)]
async fn requests_are_sent_as_long_after_their_grants_and_a_late_one_delays_the_next() {
    let schedules = schedules(memory());
    // The wait for the next slot after a request that something has delayed.
    let next = async |host: &str, delay: u64| {
        let begun = Instant::now();
        let Decision::Go(permit) = schedules.ask_host(&mut request(host)).await.unwrap() else { panic!() };
        advance(Duration::from_millis(delay)).await;
        permit.wait_to_send().await;
        schedules.in_flight.free(&*schedules.hosts).await;
        let sent = begun.elapsed().as_millis();
        let Decision::At { wait, .. } = schedules.ask_host(&mut request(host)).await.unwrap() else {
            panic!()
        };
        (sent, wait.as_millis())
    };
    assert_eq!(next("a.example", 0).await, (50, 950));
    assert_eq!(next("b.example", 40).await, (50, 950));
    assert_eq!(next("c.example", 100).await, (100, 900), "by less than a sixteenth");
    assert_eq!(next("d.example", 300).await, (300, 887), "a gap of 15/16 after it, less the usual delay");
}

#[tokio::test(start_paused = true)]
async fn a_permit_lapses_when_something_stood_still_for_longer_than_a_second_or_a_small_part_of_the_interval()
{
    let schedules = schedules(memory());
    for (rate, good) in [("10/s", 1_000), ("unlimited", 1_000), ("1/h", 225_000)] {
        let politeness = Politeness { rate: rate.parse().unwrap(), ..Politeness::default() };
        let url: CanonicalUrl = "http://a.example/".parse().unwrap();
        let permit = schedules.wait(&politeness.host_policy(&url.host()), &[], None).await.unwrap();
        let sent = Instant::now();
        while !permit.has_lapsed() {
            advance(Duration::from_millis(1)).await;
        }
        let lasted = sent.elapsed().as_millis();
        assert!((good - 300..=good + 1).contains(&lasted), "{rate}: {lasted} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_away_from_an_address_gives_its_permit_back() {
    let schedules = schedules(memory());
    let address = [Ipv4Addr::new(192, 0, 2, 7).into()];
    for number in 0..50 {
        let decision = schedules.ask(&mut request(&format!("h{number}.example")), &address, NEAR).await;
        assert!(matches!(decision, Ok(Decision::Go(_))), "so many hosts may share an address");
    }
    let mut all = tokio::task::JoinSet::new();
    for number in 50..70 {
        let schedules = schedules.clone();
        let mut request = request(&format!("h{number}.example"));
        all.spawn(async move { schedules.ask(&mut request, &address, NEAR).await.unwrap() });
    }
    let decisions = all.join_all().await;
    let sent_away = decisions.iter().filter(|decision| matches!(decision, Decision::Crowded { .. })).count();
    assert!((13..=15).contains(&sent_away), "{sent_away}");
    assert_eq!(schedules.in_flight.older_than(Duration::ZERO).len(), 20 - sent_away);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_in_hand_is_let_go_at_its_slots_and_keeps_its_turn_where_these_are_far() {
    let schedules = schedules(memory());
    let policy = |rate: &str| {
        let politeness = Politeness { rate: rate.parse().unwrap(), ..Politeness::default() };
        let url: CanonicalUrl = "http://a.example/".parse().unwrap();
        politeness.host_policy(&url.host())
    };
    let begun = Instant::now();
    for _ in 0..3 {
        schedules.wait(&policy("60/m"), &[], None).await.unwrap().end(true);
    }
    assert_eq!(begun.elapsed().as_secs(), 2);
    schedules.wait(&policy("1/h"), &[], None).await.unwrap().end(true);
    schedules.wait(&policy("1/h"), &[], None).await.unwrap_err();
    let Err(NotNow::Later(_, Some((turn, 1)))) = schedules.wait(&policy("1/h"), &[], None).await else {
        panic!()
    };
    let again = schedules.wait(&policy("1/h"), &[], Some((turn, 1))).await;
    assert!(matches!(again, Err(NotNow::Later(_, Some((same, 2)))) if same == turn), "{again:?}");
}

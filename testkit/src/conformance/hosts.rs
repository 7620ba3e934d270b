//! What every keeper of host schedules promises. Tests read the slots themselves, so that the time that a
//! call takes does not matter; intervals are long against it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use trawl_common::politeness::gcra::{BackoffTerms, HORIZON, LEAD, Pace, Slot, SlotRequest, Standing};
use trawl_common::politeness::robots::RobotsKey;
use trawl_common::ports::{
    BackoffRequest, Ended, HostControl, HostSlotRequest, Hosts, InFlightRequest, Result, RobotsEntry,
    RobotsFile,
};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;

use super::{eventually, page, unique};

/// Makes a test of each promise; the first fixture returns a guard and a [`HostPorts`], the second a guard and a [`Frugal`].
#[macro_export]
macro_rules! hosts_conformance {
    ($fixture:path, $frugal:path) => {
        $crate::promises! { $fixture, hosts:
            a_new_host_may_be_asked_at_once
            slots_are_an_interval_apart
            slots_are_apart_for_all_who_ask_at_once
            a_burst_goes_at_once_and_then_the_pace_holds
            hosts_do_not_wait_for_each_other
            beyond_the_horizon_nothing_is_reserved
            who_stays_out_of_the_line_changes_nothing_and_comes_back_when_a_slot_may_be_reserved
            a_held_slot_is_honoured_and_reserves_nothing
            a_missed_slot_is_void
            whoever_is_late_holds_up_those_after_it
            a_rate_that_no_timer_is_fine_enough_for_is_reached
            what_cannot_have_its_turn_before_its_deadline_reserves_nothing
            no_more_are_under_way_than_the_pace_allows
            a_place_that_nobody_leaves_or_keeps_is_free_after_a_while
            a_slow_host_is_asked_as_often_as_its_places_allow
            a_host_that_asks_for_it_is_left_alone_by_all
            refusals_in_a_row_double_the_time_and_those_at_once_count_once
            an_answer_ends_a_streak_of_refusals
            a_time_that_the_host_names_doubles_nothing
            no_host_is_left_alone_for_longer_than_settings_say
            a_blocked_host_is_not_asked_until_it_is_unblocked
            unblocking_lifts_a_back_off
            people_see_what_is_known_of_a_host
            of_all_who_need_a_robots_file_one_fetches_it
            a_robots_file_is_kept_for_its_time
            who_cannot_fetch_a_robots_file_leaves_it_to_another
        }
        $crate::promises! { $frugal, hosts:
            robots_files_keep_to_their_budget
        }
    };
}

/// The hosts as workers and as people see them.
pub struct HostPorts {
    /// For workers.
    pub hosts: Arc<dyn Hosts>,
    /// For people.
    pub control: Arc<dyn HostControl>,
}

/// A store for robots.txt files that no other test uses.
pub struct Frugal {
    /// For workers.
    pub hosts: Arc<dyn Hosts>,
    /// What all files together may take.
    pub robots_bytes: usize,
}

/// What a call may take on a busy machine, and what a clock may differ.
const SLACK: u64 = 2_000;

fn key(name: &str) -> HostKey {
    HostKey::host(&page(name, 0).host())
}

/// One request each so many seconds, and so many at once.
fn ask(host: &str, seconds: u64, burst: u32) -> HostSlotRequest {
    let pace = Pace { interval: Duration::from_secs(seconds), burst, concurrency: 0 };
    let request = SlotRequest {
        pace,
        held: None,
        standing: Standing::New,
        deadline: None,
        token: 0,
        lapse: Duration::from_secs(60),
    };
    HostSlotRequest { key: key(host), request }
}

fn with(ask: &HostSlotRequest, change: impl FnOnce(&mut SlotRequest)) -> HostSlotRequest {
    let mut ask = ask.clone();
    change(&mut ask.request);
    ask
}

async fn one(ports: &HostPorts, ask: &HostSlotRequest) -> Result<Slot> {
    Ok(ports.hosts.reserve(std::slice::from_ref(ask)).await?[0])
}

/// The instant of a slot that must have been given.
fn at(slot: Slot) -> UnixMs {
    match slot {
        Slot::Now => UnixMs::now(),
        Slot::Reserved { at, .. } => at,
        other => panic!("no slot: {other:?}"),
    }
}

fn later(slot: Slot) -> Duration {
    match slot {
        Slot::Later { wait, .. } => wait,
        other => panic!("not beyond the horizon: {other:?}"),
    }
}

fn wait(slot: Slot) -> Duration {
    match slot {
        Slot::Reserved { wait, .. } => wait,
        other => panic!("not reserved: {other:?}"),
    }
}

fn is_about(time: Duration, seconds: u64) -> bool {
    (time.as_millis() as u64).abs_diff(seconds * 1_000) <= SLACK
}

/// Milliseconds from each slot to the next.
fn gaps(slots: &[UnixMs]) -> Vec<u64> {
    slots.windows(2).map(|pair| pair[1].since(pair[0]).as_millis() as u64).collect()
}

/// With no wait, at this moment.
pub async fn a_new_host_may_be_asked_at_once(ports: &HostPorts) -> Result<()> {
    assert_eq!(one(ports, &ask(&unique("host"), 10, 1)).await?, Slot::Now);
    Ok(())
}

/// In one call and over several, in the order of asking, and each wait ends at its slot.
pub async fn slots_are_an_interval_apart(ports: &HostPorts) -> Result<()> {
    let ask = ask(&unique("host"), 7, 1);
    let mut slots = ports.hosts.reserve(&[ask.clone(), ask.clone()]).await?;
    slots.extend(ports.hosts.reserve(&[ask.clone(), ask]).await?);
    assert_eq!(slots[0], Slot::Now);
    let instants: Vec<_> = slots[1..].iter().map(|slot| at(*slot)).collect();
    assert!(gaps(&instants).iter().all(|gap| gap.abs_diff(7_000) <= 1), "{instants:?}");
    let Slot::Reserved { wait, at } = slots[3] else { panic!("{slots:?}") };
    assert!(UnixMs::now().plus(wait).0.abs_diff(at.0) <= SLACK, "{wait:?} until {at}");
    Ok(())
}

/// Reservations are atomic.
pub async fn slots_are_apart_for_all_who_ask_at_once(ports: &HostPorts) -> Result<()> {
    let ask = vec![ask(&unique("host"), 2, 1); 5];
    let hosts = &ports.hosts;
    let (one, two, three) = tokio::try_join!(hosts.reserve(&ask), hosts.reserve(&ask), hosts.reserve(&ask))?;
    let all = [one, two, three].concat();
    assert_eq!(all.iter().filter(|slot| **slot == Slot::Now).count(), 1);
    let mut instants: Vec<_> = all.into_iter().filter(|slot| *slot != Slot::Now).map(at).collect();
    instants.sort();
    assert!(gaps(&instants).iter().all(|gap| gap.abs_diff(2_000) <= 1), "{instants:?}");
    Ok(())
}

/// After a quiet time, as many as the pace allows.
pub async fn a_burst_goes_at_once_and_then_the_pace_holds(ports: &HostPorts) -> Result<()> {
    let slots = ports.hosts.reserve(&vec![ask(&unique("host"), 10, 3); 5]).await?;
    assert_eq!(slots[..3], [Slot::Now; 3]);
    assert!(is_about(wait(slots[3]), 10), "{slots:?}");
    assert_eq!(gaps(&[at(slots[3]), at(slots[4])]), [10_000]);
    Ok(())
}

/// Each has its own schedule and its own pace; answers come in the order of the questions.
pub async fn hosts_do_not_wait_for_each_other(ports: &HostPorts) -> Result<()> {
    let (slow, quick) = (ask(&unique("slow"), 20, 1), ask(&unique("quick"), 5, 1));
    let slots = ports.hosts.reserve(&[slow.clone(), quick.clone(), slow, quick]).await?;
    assert_eq!(slots[..2], [Slot::Now; 2]);
    assert!(is_about(wait(slots[2]), 20) && is_about(wait(slots[3]), 5), "{slots:?}");
    Ok(())
}

/// Those who come too early line up by the pace, come back a little before their turn, and block nobody when they
/// vanish.
pub async fn beyond_the_horizon_nothing_is_reserved(ports: &HostPorts) -> Result<()> {
    let slow = ask(&unique("host"), 20, 1);
    let slots = ports.hosts.reserve(&vec![slow.clone(); 4]).await?;
    let last = at(slots[1]);
    let (first, second) = (later(slots[2]), later(slots[3]));
    assert!(first >= HORIZON - LEAD, "{first:?}");
    assert_eq!((second - first).as_millis(), 20_000);
    // A burst of two reaches back by one interval: from the first free slot to the last taken one.
    let next = at(one(ports, &with(&slow, |request| request.pace.burst = 2)).await?);
    assert!(next.0.abs_diff(last.0) <= 1, "{next} is not {last}");
    Ok(())
}

/// A URL that was parked for its slot goes when it comes.
pub async fn a_held_slot_is_honoured_and_reserves_nothing(ports: &HostPorts) -> Result<()> {
    let fresh = ask(&unique("host"), 10, 1);
    let slots = ports.hosts.reserve(&[fresh.clone(), fresh.clone()]).await?;
    let mine = at(slots[1]);
    for _ in 0..2 {
        assert_eq!(at(one(ports, &with(&fresh, |request| request.held = Some(mine))).await?), mine);
    }
    let next = at(one(ports, &fresh).await?);
    assert_eq!(next.since(mine).as_millis().abs_diff(10_000), 0, "{next} follows {mine}");
    let due = Some(UnixMs(UnixMs::now().0 - 3_000));
    let other = with(&ask(&unique("host"), 10, 1), |request| request.held = due);
    assert_eq!(one(ports, &other).await?, Slot::Now);
    Ok(())
}

/// Ahead of those in line, who come back later.
pub async fn who_stays_out_of_the_line_changes_nothing_and_comes_back_when_a_slot_may_be_reserved(
    ports: &HostPorts,
) -> Result<()> {
    let fresh = ask(&unique("host"), 20, 1);
    let aside = with(&fresh, |request| request.standing = Standing::Aside);
    assert_eq!(one(ports, &fresh).await?, Slot::Now);
    assert!(is_about(wait(one(ports, &aside).await?), 20));
    assert!(is_about(later(one(ports, &aside).await?), 40 - HORIZON.as_secs()));
    assert!(is_about(later(one(ports, &aside).await?), 40 - HORIZON.as_secs()));
    assert!(is_about(later(one(ports, &fresh).await?), 40 - LEAD.as_secs()), "nobody is in line");
    Ok(())
}

/// Whoever comes more than half of the interval late asks like anyone else.
pub async fn a_missed_slot_is_void(ports: &HostPorts) -> Result<()> {
    let fresh = ask(&unique("host"), 10, 1);
    assert_eq!(one(ports, &fresh).await?, Slot::Now);
    let missed = Some(UnixMs(UnixMs::now().0 - 8_000));
    let slot = one(ports, &with(&fresh, |request| request.held = missed)).await?;
    assert!(is_about(wait(slot), 10), "{slot:?}");
    Ok(())
}

/// But for an eighth of the interval, so that it catches up.
pub async fn whoever_is_late_holds_up_those_after_it(ports: &HostPorts) -> Result<()> {
    let fresh = ask(&unique("host"), 40, 1);
    let before = |seconds: u64| Some(UnixMs(UnixMs::now().0 - seconds * 1_000));
    assert_eq!(one(ports, &with(&fresh, |request| request.held = before(15))).await?, Slot::Now);
    let next = one(ports, &with(&fresh, |request| request.held = before(5))).await?;
    assert!(is_about(wait(next), 35), "{next:?}");
    Ok(())
}

/// By those who come to their slots some milliseconds late.
pub async fn a_rate_that_no_timer_is_fine_enough_for_is_reached(ports: &HostPorts) -> Result<()> {
    let pace = Pace { interval: Duration::from_millis(2), ..Pace::UNLIMITED };
    let fresh = with(&ask(&unique("host"), 1, 1), |request| request.pace = pace);
    let mut asks = vec![fresh; 250];
    let mut missed = 0;
    let mut slots: Vec<UnixMs> = Vec::new();
    while !asks.is_empty() {
        let mut next = UnixMs(u64::MAX);
        for (mut ask, slot) in asks.clone().into_iter().zip(ports.hosts.reserve(&asks).await?) {
            match slot {
                Slot::Now => slots.push(UnixMs::now()),
                Slot::Reserved { at, .. } => {
                    missed += usize::from(ask.request.held.is_some_and(|held| at > held));
                    next = next.min(at);
                    ask.request.held = Some(at);
                    asks.push(ask);
                }
                other => panic!("{other:?}"),
            }
        }
        asks.drain(..asks.len() - (250 - slots.len()));
        if !asks.is_empty() {
            tokio::time::sleep(next.wait_from(UnixMs::now()) + Duration::from_millis(10)).await;
        }
    }
    assert!(missed < 25, "{missed} of 250 slots were missed");
    Ok(())
}

/// Not within the horizon, nor in line.
pub async fn what_cannot_have_its_turn_before_its_deadline_reserves_nothing(ports: &HostPorts) -> Result<()> {
    let fresh = ask(&unique("host"), 20, 1);
    let before = |seconds| {
        with(&fresh, |request| request.deadline = Some(UnixMs::now().plus(Duration::from_secs(seconds))))
    };
    assert_eq!(one(ports, &fresh).await?, Slot::Now);
    assert_eq!(one(ports, &before(10)).await?, Slot::TooLate);
    assert!(is_about(wait(one(ports, &before(30)).await?), 20));
    assert!(is_about(later(one(ports, &before(60)).await?), 40 - LEAD.as_secs()));
    // A line may be no more, which shows when whoever waits in it comes back to look.
    let beyond = one(ports, &before(45)).await?;
    let Slot::Later { turn, .. } = beyond else { panic!("{beyond:?}") };
    let back = with(&before(45), |request| request.standing = Standing::InLine(turn));
    assert!(is_about(later(one(ports, &before(90)).await?), 60 - LEAD.as_secs()));
    assert_eq!(one(ports, &back).await?, Slot::TooLate);
    Ok(())
}

/// So many at once, one of them gone makes room for one.
pub async fn no_more_are_under_way_than_the_pace_allows(ports: &HostPorts) -> Result<()> {
    let host = unique("host");
    let ask =
        |token| with(&ask(&host, 0, 1), |request| (request.pace.concurrency, request.token) = (2, token));
    let slots = ports.hosts.reserve(&[ask(1), ask(2), ask(3)]).await?;
    assert_eq!(slots[..2], [Slot::Now; 2]);
    assert!(wait(slots[2]) > Duration::ZERO);
    assert_eq!(one(ports, &ask(2)).await?, Slot::Now, "who has a place needs no second one");
    let gone = ended(&host, 1);
    ports.hosts.leave(&[gone.clone(), gone]).await?;
    assert_eq!(one(ports, &ask(3)).await?, Slot::Now);
    wait(one(ports, &ask(4)).await?);
    Ok(())
}

/// Its worker is gone, while another's request only takes long.
pub async fn a_place_that_nobody_leaves_or_keeps_is_free_after_a_while(ports: &HostPorts) -> Result<()> {
    let host = unique("host");
    let brief = Duration::from_millis(200);
    let long = Duration::from_secs(60);
    let ask = |token, lapse| {
        with(&ask(&host, 0, 1), |request| {
            (request.pace.concurrency, request.token, request.lapse) = (2, token, lapse);
        })
    };
    assert_eq!(ports.hosts.reserve(&[ask(1, brief), ask(2, brief)]).await?, [Slot::Now; 2]);
    // Of what is not under way nothing is prolonged.
    let stays = [1, 9].map(|token| InFlightRequest { key: key(&host), token });
    ports.hosts.stay(&stays, long).await?;
    eventually(Duration::from_secs(10), async || Ok(one(ports, &ask(3, long)).await? == Slot::Now)).await?;
    let under_way = ports.control.host(&key(&host)).await?.map(|host| host.under_way);
    assert_eq!(under_way, Some(2), "the one that stays, and the new one");
    assert!(wait(one(ports, &ask(4, long)).await?) > Duration::ZERO);
    Ok(())
}

/// By the time that a request takes, it is known how often places come free.
pub async fn a_slow_host_is_asked_as_often_as_its_places_allow(ports: &HostPorts) -> Result<()> {
    let host = unique("host");
    let ask =
        |token| with(&ask(&host, 0, 1), |request| (request.pace.concurrency, request.token) = (1, token));
    assert_eq!(one(ports, &ask(1)).await?, Slot::Now);
    tokio::time::sleep(Duration::from_millis(60)).await;
    ports.hosts.leave(&[ended(&host, 1)]).await?;
    let took = ports.control.host(&key(&host)).await?.and_then(|host| host.latency);
    assert!(took.is_some_and(|took| took >= Duration::from_millis(50)), "{took:?}");
    assert_eq!(one(ports, &ask(2)).await?, Slot::Now);
    assert!(wait(one(ports, &ask(3)).await?) >= Duration::from_millis(50));
    Ok(())
}

/// A request that was answered.
fn ended(host: &str, token: u64) -> Ended {
    Ended { visit: InFlightRequest { key: key(host), token }, is_welcome: true }
}

fn refusal(asked: Option<u64>) -> BackoffRequest {
    let terms = BackoffTerms {
        asked: asked.map(Duration::from_secs),
        base: Duration::from_secs(30),
        jitter: 0.0,
        most: Duration::from_secs(3_600),
    };
    BackoffRequest { status: 429, terms, crawl: None }
}

/// One without a time of its own, which is left alone for so many milliseconds at first.
fn brief(base: u64) -> BackoffRequest {
    let refusal = refusal(None);
    BackoffRequest { terms: BackoffTerms { base: Duration::from_millis(base), ..refusal.terms }, ..refusal }
}

async fn strikes(ports: &HostPorts, host: &HostKey) -> Result<u32> {
    Ok(ports.control.host(host).await?.and_then(|host| host.backoff).map_or(0, |backoff| backoff.strikes))
}

/// Slots that were reserved before are void.
pub async fn a_host_that_asks_for_it_is_left_alone_by_all(ports: &HostPorts) -> Result<()> {
    let host = unique("host");
    let fresh = ask(&host, 5, 1);
    let slots = ports.hosts.reserve(&[fresh.clone(), fresh.clone()]).await?;
    let until = ports.hosts.push_back(&key(&host), &refusal(Some(20))).await?;
    assert!(is_about(until.wait_from(UnixMs::now()), 20));
    let held = Some(at(slots[1]));
    let slots = ports.hosts.reserve(&[with(&fresh, |request| request.held = held), fresh]).await?;
    assert!(is_about(wait(slots[0]), 20) && is_about(wait(slots[1]), 25), "{slots:?}");
    Ok(())
}

/// One request is one refusal; what was under way beside it says the same again.
pub async fn refusals_in_a_row_double_the_time_and_those_at_once_count_once(ports: &HostPorts) -> Result<()> {
    let at_once = key(&unique("host"));
    ports.hosts.push_back(&at_once, &refusal(None)).await?;
    let first = ports.control.host(&at_once).await?.and_then(|host| host.backoff).expect("it backs off");
    let message = UnixMs::now();
    eventually(Duration::from_secs(10), async || Ok(UnixMs::now() > message)).await?;
    let until = ports.hosts.push_back(&at_once, &refusal(None)).await?;
    let again = ports.control.host(&at_once).await?.and_then(|host| host.backoff);
    assert_eq!((first.strikes, again), (1, Some(first)));
    assert!(is_about(until.since(first.until), 0), "{first:?} {until}");
    let (host, brief) = (key(&unique("host")), brief(100));
    ports.hosts.push_back(&host, &brief).await?;
    let before = strikes(ports, &host).await?;
    eventually(Duration::from_secs(10), async || {
        ports.hosts.push_back(&host, &brief).await?;
        Ok(strikes(ports, &host).await? > before + 2)
    })
    .await?;
    let state = ports.control.host(&host).await?.and_then(|host| host.backoff).expect("it backs off");
    let wait = state.until.since(state.since).as_millis() as u64;
    assert!(wait.abs_diff(100 << (state.strikes - 1)) <= 2, "{state:?}");
    Ok(())
}

/// Of a request that had a place, and of one that needed none.
pub async fn an_answer_ends_a_streak_of_refusals(ports: &HostPorts) -> Result<()> {
    let name = unique("host");
    let host = key(&name);
    for token in [1, 2] {
        ports.hosts.push_back(&host, &brief(20)).await?;
        assert_eq!(strikes(ports, &host).await?, 1);
        if token == 1 {
            let has_gone = async || {
                let ask =
                    with(&ask(&name, 0, 1), |request| (request.pace.concurrency, request.token) = (2, token));
                Ok(one(ports, &ask).await? == Slot::Now)
            };
            eventually(Duration::from_secs(10), has_gone).await?;
        } else {
            let backoff =
                ports.control.host(&host).await?.and_then(|host| host.backoff).expect("it backs off");
            tokio::time::sleep(backoff.until.plus(Duration::from_millis(5)).wait_from(UnixMs::now())).await;
        }
        ports.hosts.leave(&[Ended { is_welcome: false, ..ended(&name, token) }]).await?;
        assert_eq!(strikes(ports, &host).await?, 1, "it did not answer as it should");
        ports.hosts.leave(&[ended(&name, token)]).await?;
        assert_eq!(strikes(ports, &host).await?, 0);
    }
    ports.hosts.push_back(&host, &brief(60_000)).await?;
    ports.hosts.leave(&[ended(&name, 3)]).await?;
    assert_eq!(
        strikes(ports, &host).await?,
        1,
        "what was under way beside a refusal says nothing of later ones"
    );
    Ok(())
}

/// It knows best.
pub async fn a_time_that_the_host_names_doubles_nothing(ports: &HostPorts) -> Result<()> {
    let host = key(&unique("host"));
    let timed = |millis| {
        let refusal = refusal(None);
        let asked = Some(Duration::from_millis(millis));
        BackoffRequest { terms: BackoffTerms { asked, ..refusal.terms }, ..refusal }
    };
    for _ in 0..5 {
        let until = ports.hosts.push_back(&host, &timed(10)).await?;
        tokio::time::sleep(until.plus(Duration::from_millis(5)).wait_from(UnixMs::now())).await;
    }
    let until = ports.hosts.push_back(&host, &refusal(None)).await?;
    assert!(is_about(until.wait_from(UnixMs::now()), 30));
    Ok(())
}

/// Whatever it asks for.
pub async fn no_host_is_left_alone_for_longer_than_settings_say(ports: &HostPorts) -> Result<()> {
    let host = key(&unique("host"));
    for asked in [u64::MAX / 2_000, 1] {
        let until = ports.hosts.push_back(&host, &refusal(Some(asked))).await?;
        assert!(is_about(until.wait_from(UnixMs::now()), 3_600));
    }
    Ok(())
}

/// Not even by a URL that holds a slot.
pub async fn a_blocked_host_is_not_asked_until_it_is_unblocked(ports: &HostPorts) -> Result<()> {
    let host = unique("host");
    let fresh = ask(&host, 0, 1);
    ports.control.block(&key(&host)).await?;
    let held = with(&fresh, |request| request.held = Some(UnixMs::now()));
    assert_eq!(ports.hosts.reserve(&[fresh.clone(), held]).await?, [Slot::Blocked; 2]);
    ports.control.block(&key(&host)).await?;
    assert!(ports.control.unblock(&key(&host)).await?);
    assert!(!ports.control.unblock(&key(&host)).await?);
    assert_eq!(one(ports, &fresh).await?, Slot::Now);
    Ok(())
}

/// A person knows better.
pub async fn unblocking_lifts_a_back_off(ports: &HostPorts) -> Result<()> {
    let host = unique("host");
    ports.hosts.push_back(&key(&host), &refusal(Some(3_600))).await?;
    assert!(ports.control.unblock(&key(&host)).await?);
    assert_eq!(one(ports, &ask(&host, 5, 1)).await?, Slot::Now);
    Ok(())
}

/// In the list, and alone.
pub async fn people_see_what_is_known_of_a_host(ports: &HostPorts) -> Result<()> {
    let (host, blocked) = (unique("host"), unique("blocked"));
    assert_eq!(ports.control.host(&key(&host)).await?, None);
    let fresh = with(&ask(&host, 8, 1), |request| request.pace.concurrency = 4);
    let other = with(&fresh, |request| request.token = 1);
    ports.hosts.reserve(&[fresh, other]).await?;
    ports.hosts.push_back(&key(&host), &refusal(Some(100))).await?;
    ports.control.block(&key(&blocked)).await?;
    let state = ports.control.host(&key(&host)).await?.expect("it was asked");
    assert_eq!((state.interval, state.under_way, state.blocked), (Some(Duration::from_secs(8)), 1, None));
    let backoff = state.backoff.expect("it backs off");
    assert_eq!((backoff.status, backoff.strikes), (429, 0), "it said itself for how long");
    assert!(state.next >= backoff.until);
    let listed = ports.control.hosts().await?;
    assert!(listed.is_sorted_by_key(|host| host.key.clone()));
    assert!(listed.contains(&state));
    let blocked = listed.iter().find(|state| state.key == key(&blocked)).expect("it is listed");
    assert!(blocked.blocked.is_some() && blocked.interval.is_none());
    Ok(())
}

fn robots_key(site: &str) -> RobotsKey {
    RobotsKey::origin(&page(site, 0).origin())
}

fn robots_file() -> RobotsFile {
    RobotsFile { status: 200, body: Bytes::from_static(b"User-agent: *\nDisallow: /\xff\n") }
}

/// The others wait for it, and get it.
pub async fn of_all_who_need_a_robots_file_one_fetches_it(ports: &HostPorts) -> Result<()> {
    let file = robots_key(&unique("host"));
    let lease = Duration::from_secs(60);
    let hosts = &ports.hosts;
    assert_eq!(hosts.robots(&file, lease).await?, RobotsEntry::Yours);
    assert_eq!(hosts.robots(&file, lease).await?, RobotsEntry::Awaited);
    hosts.keep_robots(&file, &robots_file(), lease).await?;
    assert_eq!(hosts.robots(&file, lease).await?, RobotsEntry::Known(robots_file()));
    Ok(())
}

/// And then fetched anew, by one.
pub async fn a_robots_file_is_kept_for_its_time(ports: &HostPorts) -> Result<()> {
    let file = robots_key(&unique("host"));
    ports.hosts.keep_robots(&file, &robots_file(), Duration::from_millis(20)).await?;
    let lease = Duration::from_secs(60);
    let is_mine = async || Ok(ports.hosts.robots(&file, lease).await? == RobotsEntry::Yours);
    eventually(Duration::from_secs(10), is_mine).await
}

/// At once, or when its lease has lapsed.
pub async fn who_cannot_fetch_a_robots_file_leaves_it_to_another(ports: &HostPorts) -> Result<()> {
    let file = robots_key(&unique("host"));
    let brief = Duration::from_millis(20);
    assert_eq!(ports.hosts.robots(&file, Duration::from_secs(60)).await?, RobotsEntry::Yours);
    ports.hosts.give_up_robots(&file).await?;
    assert_eq!(ports.hosts.robots(&file, brief).await?, RobotsEntry::Yours);
    let is_mine = async || Ok(ports.hosts.robots(&file, brief).await? == RobotsEntry::Yours);
    eventually(Duration::from_secs(10), is_mine).await
}

/// Whatever is put: a file that does not compress counts in full. What may be kept is.
pub async fn robots_files_keep_to_their_budget(frugal: &Frugal) -> Result<()> {
    const SIZE: usize = 50_000;
    let Frugal { hosts, robots_bytes } = frugal;
    let body: Bytes = std::iter::repeat_with(rand::random::<u8>).take(SIZE).collect();
    let file = RobotsFile { status: 200, body };
    let site = unique("site");
    let key = |number| robots_key(&format!("{site}-{number}"));
    let keys: Vec<RobotsKey> = (0..3 * robots_bytes / SIZE).map(key).collect();
    let hour = Duration::from_secs(3_600);
    for key in &keys {
        hosts.keep_robots(key, &file, hour).await?;
    }
    let kept = async || {
        let mut kept = 0;
        for key in &keys {
            kept += usize::from(hosts.robots(key, hour).await? == RobotsEntry::Known(file.clone()));
        }
        Result::Ok(kept * SIZE)
    };
    eventually(Duration::from_secs(10), async || Ok(kept().await? <= *robots_bytes)).await?;
    let kept = kept().await?;
    assert!(kept >= robots_bytes / 2, "{kept} of {robots_bytes}");
    Ok(())
}

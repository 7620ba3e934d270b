//! When requests may be sent.

use std::time::Duration;

use trawl_common::politeness::gcra::{HORIZON, LEAD, Pace, Slot, Standing};
use trawl_common::ports::{Result, SentLate};
use trawl_common::time::UnixMs;

use super::{HostPorts, SLACK, ask, at, gaps, is_about, later, one, wait, with};
use crate::conformance::unique;

/// The first request to a host may be sent at once.
pub async fn a_new_host_may_be_asked_at_once(ports: &HostPorts) -> Result<()> {
    assert_eq!(one(ports, &ask(&unique("host"), 10, 1)).await?, Slot::Now);
    Ok(())
}

/// Slots are an interval apart, in one call and over several, in the order of the requests. Each wait ends at its slot.
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

/// Slots of concurrent calls are apart too: reservations are atomic.
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

/// After a quiet time a burst may be sent at once, up to the pace's limit; then the pace holds.
pub async fn a_burst_goes_at_once_and_then_the_pace_holds(ports: &HostPorts) -> Result<()> {
    let slots = ports.hosts.reserve(&vec![ask(&unique("host"), 10, 3); 5]).await?;
    assert_eq!(slots[..3], [Slot::Now; 3]);
    assert!(is_about(wait(slots[3]), 10), "{slots:?}");
    assert_eq!(gaps(&[at(slots[3]), at(slots[4])]), [10_000]);
    Ok(())
}

/// Each host has its own schedule and pace, and answers come in the order of the requests.
pub async fn hosts_do_not_wait_for_each_other(ports: &HostPorts) -> Result<()> {
    let (slow, quick) = (ask(&unique("slow"), 20, 1), ask(&unique("quick"), 5, 1));
    let slots = ports.hosts.reserve(&[slow.clone(), quick.clone(), slow, quick]).await?;
    assert_eq!(slots[..2], [Slot::Now; 2]);
    assert!(is_about(wait(slots[2]), 20) && is_about(wait(slots[3]), 5), "{slots:?}");
    Ok(())
}

/// Beyond the horizon nothing is reserved: such requests join the waitlist at the host's rate, come back a little
/// before their slot, and delay no others if they vanish.
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

/// A held slot is honoured and reserves nothing: a URL that was parked for its slot may be sent when it comes back.
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

/// A request off the waitlist changes nothing, and comes back when a slot may be reserved, ahead of the waitlist.
pub async fn a_request_off_the_waitlist_changes_nothing_and_comes_back_when_a_slot_may_be_reserved(
    ports: &HostPorts,
) -> Result<()> {
    let fresh = ask(&unique("host"), 20, 1);
    let aside = with(&fresh, |request| request.standing = Standing::Aside);
    assert_eq!(one(ports, &fresh).await?, Slot::Now);
    assert!(is_about(wait(one(ports, &aside).await?), 20));
    assert!(is_about(later(one(ports, &aside).await?), 40 - HORIZON.as_secs()));
    assert!(is_about(later(one(ports, &aside).await?), 40 - HORIZON.as_secs()));
    assert!(is_about(later(one(ports, &fresh).await?), 40 - LEAD.as_secs()), "the waitlist is empty");
    Ok(())
}

/// A slot that is missed by more than half of the interval is void.
pub async fn a_missed_slot_is_void(ports: &HostPorts) -> Result<()> {
    let fresh = ask(&unique("host"), 10, 1);
    assert_eq!(one(ports, &fresh).await?, Slot::Now);
    let missed = Some(UnixMs(UnixMs::now().0 - 8_000));
    let slot = one(ports, &with(&fresh, |request| request.held = missed)).await?;
    assert!(is_about(wait(slot), 10), "{slot:?}");
    Ok(())
}

/// A late request delays those after it, except for a sixteenth of the interval, so that the host catches up.
pub async fn a_late_request_delays_those_after_it(ports: &HostPorts) -> Result<()> {
    let fresh = ask(&unique("host"), 32, 1);
    let before = |seconds: u64| Some(UnixMs(UnixMs::now().0 - seconds * 1_000));
    assert_eq!(one(ports, &with(&fresh, |request| request.held = before(15))).await?, Slot::Now);
    let next = one(ports, &with(&fresh, |request| request.held = before(5))).await?;
    assert!(is_about(wait(next), 30), "{next:?}");
    Ok(())
}

/// A request that was sent late delays those after it: their gap counts from then on.
pub async fn a_request_that_was_sent_late_delays_those_after_it(ports: &HostPorts) -> Result<()> {
    let fresh = ask(&unique("host"), 20, 1);
    assert_eq!(one(ports, &fresh).await?, Slot::Now);
    let sent = SentLate { key: fresh.key.clone(), next_after: Duration::from_secs(40) };
    ports.hosts.sent_late(&[sent]).await?;
    let next = one(ports, &with(&fresh, |request| request.held = Some(UnixMs::now()))).await?;
    assert!(is_about(wait(next), 40), "{next:?}");
    Ok(())
}

/// A rate finer than any timer is reached, although requests come some milliseconds late.
pub async fn a_rate_finer_than_any_timer_is_reached(ports: &HostPorts) -> Result<()> {
    let pace = Pace { interval: Duration::from_millis(2), ..Pace::UNLIMITED };
    let fresh = with(&ask(&unique("host"), 1, 1), |request| request.pace = pace);
    let mut asks = vec![fresh; 250];
    let mut missed = 0;
    let mut slots: Vec<UnixMs> = Vec::new();
    while !asks.is_empty() {
        let mut next = UnixMs(u64::MAX);
        let answers = ports.hosts.reserve(&asks).await?;
        let answered = UnixMs::now();
        for (mut ask, slot) in asks.clone().into_iter().zip(answers) {
            match slot {
                Slot::Now => slots.push(UnixMs::now()),
                Slot::Reserved { at, .. } => {
                    // One that a busy machine asked for later still tells nothing.
                    let in_time = |held: &UnixMs| answered <= held.plus(Duration::from_millis(20));
                    let held = ask.request.held.filter(in_time);
                    missed += usize::from(held.is_some_and(|held| at > held));
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

/// A request that would be sent after its deadline reserves nothing, neither within the horizon nor in the waitlist.
pub async fn a_request_that_would_be_sent_after_its_deadline_reserves_nothing(
    ports: &HostPorts,
) -> Result<()> {
    let fresh = ask(&unique("host"), 20, 1);
    let before = |seconds| {
        with(&fresh, |request| request.deadline = Some(UnixMs::now().plus(Duration::from_secs(seconds))))
    };
    assert_eq!(one(ports, &fresh).await?, Slot::Now);
    assert_eq!(one(ports, &before(10)).await?, Slot::TooLate);
    assert!(is_about(wait(one(ports, &before(30)).await?), 20));
    assert!(is_about(later(one(ports, &before(60)).await?), 40 - LEAD.as_secs()));
    // The waitlist may be gone, which shows when a request in it comes back to check.
    let beyond = one(ports, &before(45)).await?;
    let Slot::Later { turn, .. } = beyond else { panic!("{beyond:?}") };
    let back = with(&before(45), |request| request.standing = Standing::Waitlisted(turn));
    assert!(is_about(later(one(ports, &before(90)).await?), 60 - LEAD.as_secs()));
    assert_eq!(one(ports, &back).await?, Slot::TooLate);
    Ok(())
}

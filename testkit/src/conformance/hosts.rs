//! What every keeper of host schedules promises. Tests read the slots themselves, so that the time that a
//! call takes does not matter; intervals are long against it.

use std::sync::Arc;
use std::time::Duration;

use trawl_common::gcra::{HORIZON, Pace, Slot};
use trawl_common::ports::{Ask, Hosts, Result};
use trawl_common::time::UnixMs;

use super::{page, unique};

/// Makes a test of each promise; the fixture returns a guard and an `Arc<dyn Hosts>`.
#[macro_export]
macro_rules! hosts_conformance {
    ($fixture:path) => {
        $crate::promises! { $fixture, hosts:
            a_new_host_may_be_asked_at_once
            slots_are_an_interval_apart
            slots_are_apart_for_all_who_ask_at_once
            a_burst_goes_at_once_and_then_the_pace_holds
            hosts_do_not_wait_for_each_other
            beyond_the_horizon_nothing_is_reserved
            a_held_slot_is_honoured_and_reserves_nothing
            a_missed_slot_is_void
        }
    };
}

/// What a call may take on a busy machine, and what a clock may differ.
const SLACK: u64 = 2_000;

fn ask(host: &str, seconds: u64, burst: u32) -> Ask {
    let pace = Pace { interval: Duration::from_secs(seconds), burst };
    Ask { host: page(host, 0).host(), pace, held: None }
}

/// The instant of a slot that must have been granted.
fn at(slot: Slot) -> UnixMs {
    match slot {
        Slot::Granted { at, .. } => at,
        Slot::Later { wait } => panic!("not granted: later, in {wait:?}"),
    }
}

fn later(slot: Slot) -> Duration {
    match slot {
        Slot::Later { wait } => wait,
        Slot::Granted { at, .. } => panic!("granted for {at}, beyond the horizon"),
    }
}

/// Milliseconds from each slot to the next.
fn gaps(slots: &[UnixMs]) -> Vec<u64> {
    slots.windows(2).map(|pair| pair[1].since(pair[0]).as_millis() as u64).collect()
}

/// With no wait, at this moment.
pub async fn a_new_host_may_be_asked_at_once(hosts: &Arc<dyn Hosts>) -> Result<()> {
    let slots = hosts.reserve(&[ask(&unique("host"), 10, 1)]).await?;
    let [Slot::Granted { wait, at }] = slots[..] else { panic!("{slots:?}") };
    assert_eq!(wait, Duration::ZERO);
    assert!(at.0.abs_diff(UnixMs::now().0) <= SLACK, "{at}");
    Ok(())
}

/// In one call and over several, in the order of asking, and each wait ends at its slot.
pub async fn slots_are_an_interval_apart(hosts: &Arc<dyn Hosts>) -> Result<()> {
    let ask = ask(&unique("host"), 7, 1);
    let mut slots = hosts.reserve(&[ask.clone(), ask.clone()]).await?;
    slots.extend(hosts.reserve(&[ask.clone(), ask]).await?);
    let instants: Vec<_> = slots.iter().map(|slot| at(*slot)).collect();
    assert!(gaps(&instants).iter().all(|gap| gap.abs_diff(7_000) <= 1), "{instants:?}");
    let Slot::Granted { wait, at } = slots[3] else { panic!("{slots:?}") };
    assert!(UnixMs::now().plus(wait).0.abs_diff(at.0) <= SLACK, "{wait:?} until {at}");
    Ok(())
}

/// Reservations are atomic.
pub async fn slots_are_apart_for_all_who_ask_at_once(hosts: &Arc<dyn Hosts>) -> Result<()> {
    let ask = vec![ask(&unique("host"), 2, 1); 5];
    let (one, two, three) = tokio::try_join!(hosts.reserve(&ask), hosts.reserve(&ask), hosts.reserve(&ask))?;
    let mut instants: Vec<_> = [one, two, three].concat().into_iter().map(at).collect();
    instants.sort();
    assert!(gaps(&instants).iter().all(|gap| gap.abs_diff(2_000) <= 1), "{instants:?}");
    Ok(())
}

/// After a quiet time, as many as the pace allows.
pub async fn a_burst_goes_at_once_and_then_the_pace_holds(hosts: &Arc<dyn Hosts>) -> Result<()> {
    let ask = ask(&unique("host"), 10, 3);
    let slots = hosts.reserve(&vec![ask; 5]).await?;
    let instants: Vec<_> = slots.into_iter().map(at).collect();
    let gaps = gaps(&instants);
    assert!(gaps[0] <= SLACK && gaps[1] <= SLACK, "{instants:?}");
    assert!(gaps[2].abs_diff(10_000) <= SLACK, "{instants:?}");
    assert!(gaps[3].abs_diff(10_000) <= 1, "{instants:?}");
    Ok(())
}

/// Each has its own schedule and its own pace; answers come in the order of the questions.
pub async fn hosts_do_not_wait_for_each_other(hosts: &Arc<dyn Hosts>) -> Result<()> {
    let (slow, quick) = (ask(&unique("slow"), 20, 1), ask(&unique("quick"), 5, 1));
    let slots = hosts.reserve(&[slow.clone(), quick.clone(), slow, quick]).await?;
    let instants: Vec<_> = slots.into_iter().map(at).collect();
    assert!(instants[1].since(instants[0]).as_millis() as u64 <= SLACK, "{instants:?}");
    assert!(instants[2].since(instants[0]).abs_diff(Duration::from_secs(20)) <= Duration::from_millis(1));
    assert!(instants[3].since(instants[1]).abs_diff(Duration::from_secs(5)) <= Duration::from_millis(1));
    Ok(())
}

/// Those who come too early line up by the pace, and block nobody when they vanish.
pub async fn beyond_the_horizon_nothing_is_reserved(hosts: &Arc<dyn Hosts>) -> Result<()> {
    let slow = ask(&unique("host"), 20, 1);
    let slots = hosts.reserve(&vec![slow.clone(); 4]).await?;
    let last = at(slots[1]);
    let (first, second) = (later(slots[2]), later(slots[3]));
    assert!(first >= HORIZON, "{first:?}");
    let apart = (second - first).as_millis() as u64;
    assert!(apart.abs_diff(20_000) <= SLACK, "{first:?}, {second:?}");
    // A burst of two reaches back by one interval: from the first free slot to the last taken one.
    let reaching = Ask { pace: Pace { burst: 2, ..slow.pace }, ..slow };
    let next = at(hosts.reserve(&[reaching]).await?[0]);
    assert!(next.0.abs_diff(last.0) <= 1, "{next} is not {last}");
    Ok(())
}

/// A URL that was parked for its slot goes when it comes.
pub async fn a_held_slot_is_honoured_and_reserves_nothing(hosts: &Arc<dyn Hosts>) -> Result<()> {
    let fresh = ask(&unique("host"), 10, 1);
    let slots = hosts.reserve(&[fresh.clone(), fresh.clone()]).await?;
    let mine = at(slots[1]);
    let held = Ask { held: Some(mine), ..fresh.clone() };
    for _ in 0..2 {
        assert_eq!(at(hosts.reserve(std::slice::from_ref(&held)).await?[0]), mine);
    }
    let next = at(hosts.reserve(&[fresh]).await?[0]);
    assert_eq!(next.since(mine).as_millis().abs_diff(10_000), 0, "{next} follows {mine}");
    Ok(())
}

/// Whoever comes more than a quarter of the interval late asks like anyone else.
pub async fn a_missed_slot_is_void(hosts: &Arc<dyn Hosts>) -> Result<()> {
    let fresh = ask(&unique("host"), 10, 1);
    let first = at(hosts.reserve(std::slice::from_ref(&fresh)).await?[0]);
    let missed = Some(UnixMs(first.0 - 6_000));
    let next = at(hosts.reserve(&[Ask { held: missed, ..fresh }]).await?[0]);
    assert!(next.since(first).as_millis().abs_diff(10_000) <= 1, "{next} follows {first}");
    Ok(())
}

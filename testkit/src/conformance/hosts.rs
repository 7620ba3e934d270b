//! The promises of every store of host schedules. The tests compare slots, not the time that calls take, and their
//! intervals are long in comparison.

use std::sync::Arc;
use std::time::Duration;

use trawl_common::politeness::gcra::{Pace, Slot, SlotRequest, Standing};
use trawl_common::ports::{Ended, HostControl, HostSlotRequest, Hosts, InFlightRequest, Result};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;

use super::page;

mod back_off;
mod in_flight;
mod robots;
mod slots;

pub use back_off::*;
pub use in_flight::*;
pub use robots::*;
pub use slots::*;

/// Makes a test of each promise; the first fixture returns a guard and a [`HostPorts`], the second a guard and a
/// [`Frugal`].
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
            a_request_off_the_waitlist_changes_nothing_and_comes_back_when_a_slot_may_be_reserved
            a_held_slot_is_honoured_and_reserves_nothing
            a_missed_slot_is_void
            a_late_request_delays_those_after_it
            a_request_that_was_sent_late_delays_those_after_it
            a_rate_finer_than_any_timer_is_reached
            a_request_that_would_be_sent_after_its_deadline_reserves_nothing
            no_more_requests_are_in_flight_than_the_pace_allows
            a_request_that_nobody_ends_or_extends_stops_counting_after_a_while
            a_slow_host_is_asked_as_often_as_its_limit_in_flight_allows
            a_back_off_holds_for_every_worker
            refusals_in_a_row_double_the_back_off_and_those_at_once_count_once
            an_answer_ends_a_streak_of_refusals
            a_retry_after_is_taken_as_it_is
            no_back_off_is_longer_than_the_settings_allow
            a_blocked_host_is_not_asked_until_it_is_unblocked
            unblocking_lifts_a_back_off
            everything_known_of_a_host_can_be_listed
            one_of_all_that_need_a_robots_file_fetches_it
            a_robots_file_is_kept_for_its_time
            a_worker_that_cannot_fetch_a_robots_file_leaves_it_to_another
        }
        $crate::promises! { $frugal, hosts:
            robots_files_keep_to_their_budget
        }
    };
}

/// The hosts as workers and as operators see them.
pub struct HostPorts {
    /// The port for workers.
    pub hosts: Arc<dyn Hosts>,
    /// The port for operators.
    pub control: Arc<dyn HostControl>,
}

/// A store for robots.txt files that no other test uses.
pub struct Frugal {
    /// The port for workers.
    pub hosts: Arc<dyn Hosts>,
    /// Maximum size in bytes of all files together.
    pub robots_bytes: usize,
}

/// Tolerance in milliseconds for calls on a busy machine, and for clocks.
const SLACK: u64 = 2_000;

fn key(name: &str) -> HostKey {
    HostKey::host(&page(name, 0).host())
}

/// Returns a slot request for a pace of one request per `seconds` seconds and bursts of `burst`.
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

/// Returns the instant of a slot. Panics if none was given.
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

/// Returns the milliseconds from each slot to the next.
fn gaps(slots: &[UnixMs]) -> Vec<u64> {
    slots.windows(2).map(|pair| pair[1].since(pair[0]).as_millis() as u64).collect()
}

/// Returns the end of a request that was answered.
fn ended(host: &str, token: u64) -> Ended {
    Ended { visit: InFlightRequest { key: key(host), token }, is_welcome: true }
}

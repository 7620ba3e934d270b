//! The life of one URL explored, with the transitions of `trawl_common::frontier`: a producer, a sweeper and two workers in
//! every order, and everything that may go wrong between them.
//!
//! `MODEL_STATES` sets how many states are looked at for each number of faults; scripts/model-check looks at ten million.

mod guards;
mod search;
mod steps;
mod world;

use guards::Guard;
use search::{Found, search};
use steps::{Broken, Model};
use world::{BEGINNING, Faults, People, World};

fn most() -> usize {
    std::env::var("MODEL_STATES").map_or(50_000, |number| number.parse().expect("MODEL_STATES is a number"))
}

#[test]
fn nothing_is_lost_whatever_goes_wrong() {
    for faults in 0..=3 {
        let model = Model { people: People::new(), without: None, horizon: BEGINNING + 8 };
        let first = World::new(Faults { left: faults, ..Faults::default() });
        let Found { worlds, is_complete, broken } = search(&model, first, most());
        eprintln!("{faults} faults: {worlds} states, {}", if is_complete { "all" } else { "the nearest" });
        if let Some((promise, trace)) = broken {
            panic!("{promise:?} after\n{trace}");
        }
    }
}

/// Panics unless this promise is the first that breaks without a guard, by nothing rarer than one death, lost connection or
/// lost answer.
fn breaks(guard: Guard, promise: Broken) {
    let model = Model { people: People::new(), without: Some(guard), horizon: BEGINNING + 2 };
    let found = search(&model, World::new(Faults::few(1)), 1_000_000);
    let (broken, trace) = found.broken.expect("nothing else keeps it");
    eprintln!("without {guard:?}: {broken:?} after\n{trace}");
    assert_eq!(broken, promise, "after\n{trace}");
}

#[test]
fn a_message_that_is_acknowledged_before_it_is_sent_again_is_missed() {
    breaks(Guard::ResendBeforeAck, Broken::OnlyInTheStore);
}

#[test]
fn a_record_that_is_confirmed_before_its_message_is_published_is_only_in_the_store() {
    breaks(Guard::PublishBeforeConfirm, Broken::OnlyInTheStore);
}

#[test]
fn a_message_of_what_another_holds_is_not_to_be_dropped() {
    breaks(Guard::Delay, Broken::OnlyInTheStore);
}

#[test]
fn without_leases_two_workers_fetch_a_page() {
    breaks(Guard::Lease, Broken::FetchedByTwo);
}

#[test]
fn what_another_has_taken_over_ends_by_nobody_else() {
    breaks(Guard::Holder, Broken::EndedByAnother);
}

#[test]
fn without_a_sweep_what_was_lost_never_ends() {
    breaks(Guard::Sweep, Broken::NeverEnds);
}

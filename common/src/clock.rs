//! The clock that this process goes by.
//!
//! Processes of a fleet compare instants that others wrote: deadlines, slots, when a parked URL is due. So all of them go
//! by one clock, that of the frontier. A process measures it now and then ([`follow`]) and counts on with its machine's
//! monotonic time, so that setting a machine's clock changes nothing. A process that follows no other clock goes
//! by its machine's; one that has to wait by it goes [on with it](go_on), whatever that is set back to.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Where the monotonic time of this process is counted from.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// What the followed clock said at [`ORIGIN`], in microseconds since 1970; zero while no clock is followed.
static BASE: AtomicU64 = AtomicU64::new(0);

/// What another clock said, and between which instants it was asked and had answered.
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    /// What it said, in microseconds since 1970.
    pub micros: u64,
    /// When it was asked.
    pub asked: Instant,
    /// When its answer was here.
    pub answered: Instant,
}

impl ClockReading {
    /// What the clock said at `origin`, at the earliest and at the latest: it was read at any instant of the round trip.
    fn bounds(&self, origin: Instant) -> (u64, u64) {
        let at_origin = |read: Instant| self.micros.saturating_sub(micros_between(origin, read)).max(1);
        (at_origin(self.answered), at_origin(self.asked))
    }
}

/// Goes by the clock that was read, from now on.
pub fn follow(reading: ClockReading) {
    let bounds = reading.bounds(*ORIGIN);
    let mend = |base| Some(mended(base, bounds));
    // Always `Ok`: the closure never declines.
    let _ = BASE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, mend);
}

/// Goes on with the machine's clock: where that was set back, by monotonic time from what it said before. So what is to come at an instant
/// comes when as much time has passed. A clock that is set forward is followed: the machine may have slept.
pub fn go_on() {
    let read = machine_micros().saturating_sub(micros_between(*ORIGIN, Instant::now())).max(1);
    BASE.fetch_max(read, Ordering::Relaxed);
}

/// A base that agrees with the latest reading. What agrees already stays, so that a slow answer moves nothing.
fn mended(base: u64, (earliest, latest): (u64, u64)) -> u64 {
    if base == 0 { earliest + (latest - earliest) / 2 } else { base.clamp(earliest, latest) }
}

/// The milliseconds since 1970 by the clock that is followed, else by the machine's.
pub(crate) fn now_ms() -> u64 {
    now_micros() / 1_000
}

/// The microseconds since 1970 by the same clock.
pub fn now_micros() -> u64 {
    match BASE.load(Ordering::Relaxed) {
        0 => machine_micros(),
        base => base + micros_between(*ORIGIN, Instant::now()),
    }
}

/// The milliseconds since 1970 by the machine's clock.
pub(crate) fn machine_ms() -> u64 {
    machine_micros() / 1_000
}

fn machine_micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64
}

fn micros_between(earlier: Instant, later: Instant) -> u64 {
    later.saturating_duration_since(earlier).as_micros() as u64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock_check;

    const SERVER: u64 = 1_700_000_000_000_000;

    fn bounds(asked: u64, answered: u64) -> (u64, u64) {
        let origin = Instant::now();
        let at = |millis| origin + Duration::from_millis(millis);
        ClockReading { micros: SERVER, asked: at(asked), answered: at(answered) }.bounds(origin)
    }

    #[test]
    fn a_clock_is_known_to_half_the_round_trip() {
        assert_eq!(mended(0, bounds(1_000, 1_200)), SERVER - 1_100_000);
    }

    #[test]
    fn a_slow_answer_moves_no_clock_that_may_be_right() {
        let base = SERVER - 1_100_000;
        assert_eq!(mended(base, bounds(500, 5_000)), base);
    }

    #[test]
    fn a_clock_that_is_wrong_moves_as_far_as_it_must() {
        assert_eq!(mended(SERVER - 9_000_000, bounds(1_000, 1_200)), SERVER - 1_200_000);
        assert_eq!(mended(SERVER + 9_000_000, bounds(1_000, 1_200)), SERVER - 1_000_000);
    }

    #[test]
    fn whoever_follows_a_clock_goes_by_it_whatever_the_machines_says() {
        let ahead = machine_ms() + 7_200_000;
        let now = Instant::now();
        follow(ClockReading { micros: ahead * 1_000, asked: now, answered: now });
        assert!((ahead..ahead + 60_000).contains(&now_ms()));
        assert!(clock_check::disagreement().is_some());
    }
}

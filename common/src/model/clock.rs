//! The clock of this process.
//!
//! Processes of a fleet compare instants that others wrote: deadlines, slots, the time when a parked URL is due.
//! So all of them use one clock, that of the frontier. A process measures it now and then ([`follow`]) and counts
//! on with its machine's monotonic time, so that setting a machine's clock changes nothing. A process that follows
//! no other clock uses its machine's; one that has to wait by it [continues it](go_on) even if it is set back.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The origin from which the monotonic time of this process is counted.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The time of the followed clock at [`ORIGIN`], in microseconds since 1970; zero while no clock is followed.
static BASE: AtomicU64 = AtomicU64::new(0);

/// A reading of another clock, with the instants of the request and the answer.
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    /// The time read, in microseconds since 1970.
    pub micros: u64,
    /// The instant of the request.
    pub asked: Instant,
    /// The instant of the answer.
    pub answered: Instant,
}

impl ClockReading {
    /// Returns the earliest and the latest time of the clock at `origin`: it was read at some instant of the round
    /// trip.
    fn bounds(&self, origin: Instant) -> (u64, u64) {
        let at_origin = |read: Instant| self.micros.saturating_sub(micros_between(origin, read)).max(1);
        (at_origin(self.answered), at_origin(self.asked))
    }
}

/// Follows the clock that was read, from now on.
pub fn follow(reading: ClockReading) {
    let bounds = reading.bounds(*ORIGIN);
    let mend = |base| Some(mended(base, bounds));
    // Always `Ok`: the closure never declines.
    let _ = BASE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, mend);
}

/// Continues with the machine's clock. If that was set back, continues from its earlier time with monotonic time,
/// so that a wait takes no longer than planned. A clock that is set forward is followed: the machine may have
/// slept.
pub fn go_on() {
    let read = machine_micros().saturating_sub(micros_between(*ORIGIN, Instant::now())).max(1);
    BASE.fetch_max(read, Ordering::Relaxed);
}

/// Returns a base that agrees with the latest reading. One that agrees already stays, so that a slow answer moves
/// nothing.
fn mended(base: u64, (earliest, latest): (u64, u64)) -> u64 {
    if base == 0 { earliest + (latest - earliest) / 2 } else { base.clamp(earliest, latest) }
}

/// Returns the milliseconds since 1970 by the followed clock, else by the machine's.
pub(crate) fn now_ms() -> u64 {
    now_micros() / 1_000
}

/// Returns the microseconds since 1970 by the same clock.
pub fn now_micros() -> u64 {
    match BASE.load(Ordering::Relaxed) {
        0 => machine_micros(),
        base => base + micros_between(*ORIGIN, Instant::now()),
    }
}

/// Returns the milliseconds since 1970 by the machine's clock.
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

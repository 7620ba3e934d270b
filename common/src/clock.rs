//! The clock that this process goes by.
//!
//! Processes of a fleet compare instants that others wrote: deadlines, slots, when a parked URL is due. So all of them go
//! by one clock, that of the frontier. A process measures it now and then ([`follow`]) and counts on with its machine's
//! monotonic time, so that nobody who sets a machine's clock changes anything. A process that follows no other clock goes
//! by its machine's.

use std::fmt;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::time::UnixMs;

/// A machine whose clock differs by more than this from the fleet's is not set right.
pub const TOLERANCE: Duration = Duration::from_secs(60);

/// Where the monotonic time of this process is counted from.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// What the followed clock said at [`ORIGIN`], in microseconds since 1970; zero while no clock is followed.
static BASE: AtomicU64 = AtomicU64::new(0);

/// What another clock said, and between which instants it was asked and had answered.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// What it said, in microseconds since 1970.
    pub micros: u64,
    /// When it was asked.
    pub asked: Instant,
    /// When its answer was here.
    pub answered: Instant,
}

impl Reading {
    /// What the clock said at `origin`, at the earliest and at the latest: it was read at any instant of the round trip.
    fn bounds(&self, origin: Instant) -> (u64, u64) {
        let at_origin = |read: Instant| self.micros.saturating_sub(micros_between(origin, read)).max(1);
        (at_origin(self.answered), at_origin(self.asked))
    }
}

/// Goes by the clock that was read, from now on.
pub fn follow(reading: Reading) {
    let bounds = reading.bounds(*ORIGIN);
    let mend = |base| Some(mended(base, bounds));
    // Always `Ok`: the closure never declines.
    let _ = BASE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, mend);
}

/// A base that agrees with the latest reading. What agrees already stays, so that a slow answer moves nothing.
fn mended(base: u64, (earliest, latest): (u64, u64)) -> u64 {
    if base == 0 { earliest + (latest - earliest) / 2 } else { base.clamp(earliest, latest) }
}

/// The time by the clock that is followed, else by the machine's.
pub(crate) fn now() -> UnixMs {
    match BASE.load(Ordering::Relaxed) {
        0 => machine(),
        base => UnixMs((base + micros_between(*ORIGIN, Instant::now())) / 1_000),
    }
}

fn machine() -> UnixMs {
    UnixMs(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64)
}

fn micros_between(earlier: Instant, later: Instant) -> u64 {
    later.saturating_duration_since(earlier).as_micros() as u64
}

/// A machine's clock that is far from the fleet's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Disagreement {
    machine: UnixMs,
    fleet: UnixMs,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, fleet } = self;
        let apart = Duration::from_secs((machine.0.abs_diff(fleet.0) + 500) / 1_000);
        let apart = humantime::format_duration(apart);
        let side = if machine > fleet { "ahead of" } else { "behind" };
        write!(
            f,
            "this machine's clock says {machine}, {apart} {side} Redis', which says {fleet}: set it right (NTP)"
        )
    }
}

/// Says so if this machine's clock is far from the one that is followed.
pub fn disagreement() -> Option<Disagreement> {
    apart(machine(), now())
}

fn apart(machine: UnixMs, fleet: UnixMs) -> Option<Disagreement> {
    (machine.0.abs_diff(fleet.0) > TOLERANCE.as_millis() as u64).then_some(Disagreement { machine, fleet })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: u64 = 1_700_000_000_000_000;

    fn bounds(asked: u64, answered: u64) -> (u64, u64) {
        let origin = Instant::now();
        let at = |millis| origin + Duration::from_millis(millis);
        Reading { micros: SERVER, asked: at(asked), answered: at(answered) }.bounds(origin)
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
        let ahead = UnixMs(machine().0 + 7_200_000);
        let now = Instant::now();
        follow(Reading { micros: ahead.0 * 1_000, asked: now, answered: now });
        assert!(UnixMs::now() >= ahead && UnixMs::now().since(ahead) < Duration::from_secs(60));
        assert!(disagreement().is_some());
    }

    #[test]
    fn a_machine_that_is_far_off_is_told_both_times() {
        let fleet = UnixMs(SERVER / 1_000);
        let told = |machine| apart(UnixMs(machine), fleet).map(|apart| apart.to_string());
        assert_eq!(told(fleet.0 + 60_000), None);
        assert_eq!(told(fleet.0 - 60_000), None);
        assert_eq!(
            told(fleet.0 + 7_200_000).as_deref(),
            Some(
                "this machine's clock says 2023-11-15T00:13:20.000Z, 2h ahead of Redis', which says \
                 2023-11-14T22:13:20.000Z: set it right (NTP)"
            )
        );
        assert!(told(fleet.0 - 61_000).is_some_and(|told| told.contains("1m 1s behind Redis'")));
    }
}

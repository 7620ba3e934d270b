//! The place where a URL waits for its slot: in the worker if the slot is near, otherwise on the queue's
//! [ladder](crate::frontier::ladder).

use std::time::Duration;

use crate::politeness::gcra::HORIZON;
use crate::time::UnixMs;

/// Maximum distance of a slot that a URL waits for in the worker; for a farther one it goes back to the queue's
/// ladder.
pub const NEAR: Duration = Duration::from_secs(5);

/// The delay of a URL if too many wait in the worker. It is the ladder's shortest rung.
pub const SOON: Duration = Duration::from_secs(1);

/// Delay after which a URL in a host's waitlist first comes back to check whether the waitlist is still there; it
/// doubles each time.
pub const FIRST_LOOK: Duration = Duration::from_secs(60);

/// Returns the number of URLs that may wait in a worker: half the prefetch.
pub fn max_waiting(prefetch: u16) -> usize {
    usize::from(prefetch / 2).max(1)
}

/// Returns whether a URL with a slot waits in the worker. `is_below_max` says whether fewer than [`max_waiting`]
/// do.
pub fn is_near(wait: Duration, is_below_max: bool) -> bool {
    wait <= NEAR && (is_below_max || wait < SOON)
}

/// Returns the time until which a URL that has come back is parked again without asking its host. A URL in a
/// waitlist always asks: a rung may have brought it early, and the waitlist may be shorter by now, or gone.
pub fn not_before(
    until: Option<UnixMs>,
    slot: Option<UnixMs>,
    turn: Option<(UnixMs, u8)>,
    now: UnixMs,
) -> Option<UnixMs> {
    let is_in_line = turn.is_some() && slot.is_none();
    // No slot is reserved this far ahead, so the clock was set back.
    let is_void = slot.is_some_and(|slot| slot > now.plus(2 * HORIZON));
    until.filter(|&until| until > now && !is_in_line && !is_void)
}

/// Returns how long a URL whose `turn` in the waitlist comes after `wait` stays away: until then, or less, to
/// check whether the waitlist is still there. `jitter` (0 to 1) makes that up to half longer. Also returns what
/// the URL carries along: its turn, and how often it has come back for it. `before` is what it carried so far.
pub fn waitlisted(
    wait: Duration,
    turn: UnixMs,
    before: Option<(UnixMs, u8)>,
    jitter: f64,
) -> (Duration, (UnixMs, u8)) {
    let looks = before.filter(|(before, _)| *before == turn).map_or(0, |(_, looks)| looks);
    let look = FIRST_LOOK.mul_f64(f64::from(1u32 << looks.min(16)) * (1.0 + jitter / 2.0));
    (wait.min(look), (turn, looks.saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_in_the_waitlist_looks_ever_less_often_until_its_place_changes() {
        let day = Duration::from_secs(86_400);
        let (first, carried) = waitlisted(day, UnixMs(7), None, 0.0);
        assert_eq!((first, carried), (FIRST_LOOK, (UnixMs(7), 1)));
        let (second, carried) = waitlisted(day, UnixMs(7), Some(carried), 1.0);
        assert_eq!((second, carried), (3 * FIRST_LOOK, (UnixMs(7), 2)));
        assert_eq!(waitlisted(NEAR, UnixMs(7), Some(carried), 0.5), (NEAR, (UnixMs(7), 3)));
        assert_eq!(waitlisted(day, UnixMs(8), Some(carried), 0.0), (FIRST_LOOK, (UnixMs(8), 1)));
    }

    #[test]
    fn a_url_in_the_waitlist_asks_whenever_it_comes_back_and_any_other_at_its_time() {
        let (now, then) = (UnixMs(7), UnixMs(9));
        let waitlisted = Some((UnixMs(50), 2));
        assert_eq!(not_before(Some(then), None, waitlisted, now), None);
        assert_eq!(not_before(Some(then), Some(then), waitlisted, now), Some(then));
        assert_eq!(not_before(Some(then), None, None, now), Some(then));
        assert_eq!(not_before(Some(now), None, None, now), None);
    }

    #[test]
    fn a_slot_further_ahead_than_any_is_reserved_is_not_waited_for() {
        let (now, hour) = (UnixMs(7), UnixMs(3_600_000));
        assert_eq!(not_before(Some(hour), Some(hour), None, now), None);
        assert_eq!(not_before(Some(hour), None, None, now), Some(hour));
    }

    #[test]
    fn what_is_nearer_than_the_ladder_is_fine_always_waits_in_the_worker() {
        assert!(is_near(NEAR, true) && !is_near(NEAR, false));
        assert!(is_near(SOON / 2, false) && !is_near(NEAR + SOON, true));
    }
}

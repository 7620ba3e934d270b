//! The delay ladder: a few queues, each with one time to live, in which a message waits for any length of time.

use std::time::Duration;

use crate::time::UnixMs;

/// The rungs, each about three times the one before: a URL hops at most three times on each.
pub const RUNGS: [Duration; 8] = [
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(100),
    Duration::from_secs(300),
    Duration::from_secs(1000),
    Duration::from_secs(3600),
];

/// Mean lateness of messages that come back from which there are more of them than can be handled.
pub const LATE: Duration = Duration::from_millis(500);

/// Greatest lateness of one message in that mean: its server may have been away, or the clock been set forward.
pub const MAX_LATE: Duration = Duration::from_secs(10);

/// The time at which a snoozed message comes back: decided once, for its record and for what is published later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// The instant.
    pub at: UnixMs,
    /// Its distance at the time of the decision: nothing is stored for longer.
    pub wait: Duration,
}

impl Wake {
    /// Returns the wake that is `wait` after `now`.
    pub fn after(now: UnixMs, wait: Duration) -> Self {
        Self { at: now.plus(wait), wait }
    }
}

/// Number of workers that have to requeue a message before its wait doubles.
const LEFT: u16 = 8;

/// Returns about how long a message that `left` workers have requeued waits for another one: 4 to 16 s. The ladder
/// makes 3 s or 10 s of it, each as often: a queue serves its consumers in turn, and a message that comes back at
/// a regular interval could meet the same worker every time. A message that apparently no worker can handle waits
/// longer each time, up to 30 or 100 s after some minutes; no longer, because a worker that can may join.
pub fn until_another_worker(left: u16) -> Duration {
    let doublings = u32::from(left / LEFT).min(3);
    Duration::from_secs_f64(rand::random_range(4.0..16.0)) * 2u32.pow(doublings)
}

/// Returns the highest rung that does not overshoot `wait`; the lowest for shorter waits.
pub fn rung_for(wait: Duration) -> Duration {
    RUNGS.into_iter().rev().find(|&rung| rung <= wait).unwrap_or(RUNGS[0])
}

/// Returns the rung for a message that is published at `now`: the lowest that does not bring it back before its
/// wake, but none above the one chosen with the wake, in case the clock has been set back since.
pub fn rung_until(wake: Wake, now: UnixMs) -> Duration {
    let left = wake.at.wait_from(now).min(wake.wait);
    RUNGS.into_iter().find(|&rung| rung >= left).unwrap_or(RUNGS[RUNGS.len() - 1])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const NOW: UnixMs = UnixMs(1_700_000_000_000);

    /// Generates a span in ms, or one next to a rung.
    fn span() -> impl Strategy<Value = u64> {
        let rung = proptest::sample::select(&RUNGS).prop_map(|rung| rung.as_millis() as u64);
        prop_oneof![0..7_200_000_u64, (rung, 0..3_u64).prop_map(|(rung, more)| rung + more - 1), 0..300_u64]
    }

    proptest! {
        #[test]
        fn a_message_comes_when_its_record_says_or_as_much_later_as_it_was_published_later(
            wait in span(),
            delay in span(),
        ) {
            let chosen = rung_for(Duration::from_millis(wait));
            let wake = Wake::after(NOW, chosen);
            let published = NOW.plus(Duration::from_millis(delay));
            let rung = rung_until(wake, published);
            prop_assert!(RUNGS.contains(&rung) && rung <= chosen, "{rung:?} for {chosen:?}");
            let comes = published.plus(rung);
            prop_assert!(comes >= wake.at, "{:?} too early", wake.at.since(comes));
            prop_assert!(comes.since(wake.at) <= Duration::from_millis(delay));
            if let Some(lower) = RUNGS.into_iter().rev().find(|&lower| lower < rung) {
                prop_assert!(published.plus(lower) < wake.at, "a lower rung would do");
            }
        }

        #[test]
        fn a_clock_that_was_set_back_keeps_no_message_longer(wait in span(), back in span()) {
            let chosen = rung_for(Duration::from_millis(wait));
            prop_assert_eq!(rung_until(Wake::after(NOW, chosen), UnixMs(NOW.0 - back)), chosen);
        }
    }

    #[test]
    fn what_nobody_takes_waits_longer_and_longer_but_never_for_minutes() {
        let rungs = |left: u16| -> BTreeSet<u64> {
            (0..1000).map(|_| rung_for(until_another_worker(left)).as_secs()).collect()
        };
        assert_eq!((rungs(0), rungs(LEFT - 1)), ([3, 10].into(), [3, 10].into()));
        assert_eq!((rungs(LEFT), rungs(2 * LEFT)), ([3, 10, 30].into(), [10, 30].into()));
        assert_eq!((rungs(3 * LEFT), rungs(u16::MAX)), ([30, 100].into(), [30, 100].into()));
    }

    #[test]
    fn a_wait_climbs_down_the_ladder_in_few_hops() {
        let rung = |ms| rung_for(Duration::from_millis(ms)).as_secs();
        assert_eq!([rung(0), rung(29_999), rung(30_000), rung(86_400_000)], [1, 10, 30, 3600]);
        for wait in [1_000, 4_700, 61_000, 3_599_000] {
            let (mut left, mut hops) = (wait, 0);
            while left >= 1_000 {
                left -= rung(left) * 1_000;
                hops += 1;
            }
            assert!(hops <= 3 * RUNGS.len(), "{wait}: {hops}");
        }
    }
}

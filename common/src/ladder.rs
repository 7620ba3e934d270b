//! The delay ladder: a few queues, each with one time to live, on which a message waits for as long as it likes.

use std::time::Duration;

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

/// The highest rung that does not overshoot `wait`; the lowest for shorter waits.
pub fn rung_for(wait: Duration) -> Duration {
    RUNGS.into_iter().rev().find(|&rung| rung <= wait).unwrap_or(RUNGS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

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

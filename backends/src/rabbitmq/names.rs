//! The names of queues and exchanges.

use std::time::Duration;

use trawl_common::line::Line;

/// Parked URLs whose time has come; consumed first.
pub(super) const DUE: &str = "due_queue";
/// Dead letters go through here...
pub(super) const FAILED_EXCHANGE: &str = "failed_exchange";
/// ...with this key...
pub(super) const FAILED_KEY: &str = "failed";
/// ...to here.
pub(super) const FAILED: &str = "failed_urls";
/// What outlives a lane's time to live goes through here...
pub(super) const EXPIRED_EXCHANGE: &str = "expired_exchange";
/// ...with this key...
pub(super) const EXPIRED_KEY: &str = "expired";
/// ...to here.
pub(super) const EXPIRED: &str = "expired_urls";

/// Items: the exchange that they are published to, by the spider's name, and the stream that keeps them.
pub(super) const ITEMS: &str = "items";

/// What happens to crawls is told here.
pub(super) const EVENTS: &str = "events";

/// The delay ladder's rungs, each about three times the one before: a URL hops at most
/// three times on each.
pub(super) const RUNGS: [Duration; 8] = [
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(100),
    Duration::from_secs(300),
    Duration::from_secs(1000),
    Duration::from_secs(3600),
];

/// The priority lane.
pub(super) const PRIORITY: &str = "priority_queue";
/// The bulk lane.
pub(super) const BULK: &str = "url_queue_ttl";

/// The queue of a line.
pub(super) fn line(line: Line) -> &'static str {
    match line {
        Line::Due => DUE,
        Line::Priority => PRIORITY,
        Line::Expired => EXPIRED,
        Line::Bulk => BULK,
    }
}

/// The queue of a rung.
pub(super) fn rung(rung: Duration) -> String {
    format!("wait.{}", rung.as_secs())
}

/// The highest rung that does not overshoot `wait`; the lowest for shorter waits.
pub(super) fn rung_for(wait: Duration) -> Duration {
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

//! The names of queues and exchanges.

use trawl_common::lane::Lane;

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

/// The delay ladder's rungs, in seconds, each about three times the one before: a URL hops at most
/// three times on each.
pub(super) const RUNGS: [u32; 8] = [1, 3, 10, 30, 100, 300, 1000, 3600];

/// The queue of a lane.
pub(super) fn lane(lane: Lane) -> &'static str {
    match lane {
        Lane::Priority => "priority_queue",
        Lane::Bulk => "url_queue_ttl",
    }
}

/// The queue of a rung.
pub(super) fn rung(seconds: u32) -> String {
    format!("wait.{seconds}")
}

/// The highest rung that does not overshoot a wait of `ms`; the lowest for shorter waits.
pub(super) fn rung_for(ms: u64) -> u32 {
    RUNGS.into_iter().rev().find(|&seconds| u64::from(seconds) * 1000 <= ms).unwrap_or(RUNGS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_climbs_down_the_ladder_in_few_hops() {
        assert_eq!(rung_for(0), 1);
        assert_eq!(rung_for(29_999), 10);
        assert_eq!(rung_for(30_000), 30);
        assert_eq!(rung_for(86_400_000), 3600);
        for wait in [1_000u64, 4_700, 61_000, 3_599_000] {
            let (mut left, mut hops) = (wait, 0);
            while left >= 1_000 {
                left -= u64::from(rung_for(left)) * 1_000;
                hops += 1;
            }
            assert!(hops <= 3 * RUNGS.len(), "{wait}: {hops}");
        }
    }
}

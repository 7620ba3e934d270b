//! The number of workers that the hosts of a fleet have work for. Scale by this number: a queue may be long
//! because one host may only be asked slowly, and more workers would not change that.

use std::time::Duration;

/// A host that has URLs to be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Number of URLs without a final state.
    pub pending: u64,
    /// The time between two requests; zero for no limit.
    pub interval: Duration,
    /// Maximum number of requests in flight; 0 for no limit.
    pub concurrency: u32,
    /// The duration of a request.
    pub latency: Duration,
}

impl Demand {
    /// Returns how many requests to it can be in flight at once, in thousandths: as many as begin while one takes
    /// (Little's law).
    fn in_flight(&self) -> u64 {
        let Self { pending, interval, concurrency, latency } = *self;
        let by_rate = match interval.as_micros() {
            0 => u64::MAX,
            // One is in flight now and then, however quick it is.
            interval => {
                (latency.as_micros() * 1_000).div_ceil(interval).max(1).try_into().unwrap_or(u64::MAX)
            }
        };
        let places = if concurrency == 0 { u64::MAX } else { concurrency.into() };
        by_rate.min(pending.min(places).saturating_mul(1_000))
    }
}

/// Returns the number of workers, with `fetches` fetches each at once, that these hosts can keep busy: at least
/// one if anything is to be done.
pub fn workers_of_use(hosts: impl IntoIterator<Item = Demand>, fetches: u16) -> u64 {
    let in_flight = hosts.into_iter().fold(0, |sum: u64, host| sum.saturating_add(host.in_flight()));
    in_flight.div_ceil(u64::from(fetches.max(1)) * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Demand = Demand {
        pending: 1_000_000,
        interval: Duration::from_secs(1),
        concurrency: 0,
        latency: Duration::from_millis(200),
    };

    #[test]
    fn hosts_that_are_asked_once_a_second_need_one_worker_however_long_their_queue() {
        assert_eq!(workers_of_use([HOST], 64), 1);
        assert_eq!(workers_of_use([HOST; 320], 64), 1);
        assert_eq!(workers_of_use([HOST; 321], 64), 2);
    }

    #[test]
    fn where_nothing_is_to_be_done_no_worker_is_of_use() {
        assert_eq!(workers_of_use([], 64), 0);
        assert_eq!(workers_of_use([Demand { pending: 0, ..HOST }], 64), 0);
    }

    #[test]
    fn a_host_without_a_rate_is_asked_by_as_many_as_its_places_and_its_urls_allow() {
        let open = Demand { interval: Duration::ZERO, ..HOST };
        assert_eq!(workers_of_use([Demand { concurrency: 8, ..open }], 4), 2);
        assert_eq!(workers_of_use([Demand { pending: 9, ..open }], 4), 3);
    }
}

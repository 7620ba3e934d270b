//! Measures of politeness, from the logs of hosts.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::many_hosts::Arrival;

/// The pacing of a crowd of hosts that share one pace.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pacing {
    /// Number of requests.
    pub requests: usize,
    /// Number of gaps between two requests of a host.
    pub gaps: usize,
    /// Number of gaps shorter than 85 % of the interval.
    pub short: usize,
    /// The shortest gap.
    pub shortest: Duration,
    /// Share of the requests allowed by the pace, from the first request to the last of each host, that were sent.
    pub used: f64,
}

impl Pacing {
    /// Returns the share of gaps that are too short.
    pub fn short_share(&self) -> f64 {
        self.short as f64 / self.gaps.max(1) as f64
    }
}

/// Measures the pacing of the hosts in `log`, which allow one request per `interval` each.
pub fn pacing(log: &[Arrival], interval: Duration) -> Pacing {
    let mut by_host: BTreeMap<usize, Vec<Duration>> = BTreeMap::new();
    for arrival in log {
        by_host.entry(arrival.host).or_default().push(arrival.at);
    }
    let gaps: Vec<Duration> =
        by_host.values().flat_map(|times| times.windows(2).map(|pair| pair[1] - pair[0])).collect();
    let spans: Duration = by_host.values().map(|times| times[times.len() - 1] - times[0]).sum();
    Pacing {
        requests: log.len(),
        gaps: gaps.len(),
        short: gaps.iter().filter(|gap| **gap < interval.mul_f64(0.85)).count(),
        shortest: gaps.iter().min().copied().unwrap_or_default(),
        used: gaps.len() as f64 / (spans.as_secs_f64() / interval.as_secs_f64()).max(1.0),
    }
}

/// Rate per second above which it holds over a [`QUANTUM`], not between two requests.
const FINEST: f64 = 20.0;
/// The scheduler's quantum, in seconds.
const QUANTUM: f64 = 0.05;

/// The flow of requests to one host with a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Flow {
    /// Requests per second, from the first to the last.
    pub per_second: f64,
    /// Share of requests that came earlier than the rate allows.
    pub early: f64,
    /// The longest time without a request.
    pub longest: Duration,
}

/// Measures the flow of requests at these instants, in order, to a host that allows one per `interval`; `None` for no
/// limit.
///
/// Up to 20 per second a request is early if it comes less than 85 % of the interval after the one before; at higher
/// rates, if the second before it has more requests than a second and a quantum allow.
pub fn flow(times: &[Duration], interval: Option<Duration>) -> Flow {
    let gaps: Vec<Duration> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let took: Duration = gaps.iter().sum();
    let early = match interval {
        None => 0,
        Some(interval) if interval.as_secs_f64() * FINEST >= 1.0 => {
            gaps.iter().filter(|gap| **gap < interval.mul_f64(0.85)).count()
        }
        Some(interval) => {
            let most = ((1.0 + QUANTUM) / interval.as_secs_f64()).ceil() as usize;
            times.windows(most + 1).filter(|some| some[most] - some[0] < Duration::from_secs(1)).count()
        }
    };
    Flow {
        per_second: gaps.len() as f64 / took.as_secs_f64(),
        early: early as f64 / gaps.len().max(1) as f64,
        longest: gaps.into_iter().max().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(times: &[(usize, u64)]) -> Vec<Arrival> {
        let arrival = |&(host, at): &(usize, u64)| Arrival {
            host,
            path: "/".to_owned(),
            at: Duration::from_millis(at),
        };
        times.iter().map(arrival).collect()
    }

    #[test]
    fn gaps_are_those_of_one_host() {
        let log = log(&[(0, 0), (1, 10), (0, 200), (1, 210), (0, 360), (0, 600)]);
        let pacing = pacing(&log, Duration::from_millis(200));
        assert_eq!((pacing.requests, pacing.gaps, pacing.short), (6, 4, 1));
        assert_eq!(pacing.shortest, Duration::from_millis(160));
        assert!((pacing.used - 1.0).abs() < 1e-9, "{pacing:?}");
        assert!((pacing.short_share() - 0.25).abs() < 1e-9);
    }

    #[test]
    fn a_slow_rate_is_kept_from_each_request_to_the_next() {
        let times = [0, 1_000, 1_800, 3_000, 4_000].map(Duration::from_millis);
        let flow = flow(&times, Some(Duration::from_secs(1)));
        assert!((flow.per_second - 1.0).abs() < 1e-9, "{flow:?}");
        assert!((flow.early - 0.25).abs() < 1e-9, "{flow:?}");
        assert_eq!(flow.longest, Duration::from_millis(1_200));
    }

    #[test]
    fn a_fast_rate_is_kept_over_a_second_and_may_come_in_bursts_of_a_quantum() {
        let bursts = |size: u64, pause: u64| -> Vec<Duration> {
            (0..400).map(|at| Duration::from_millis(at / size * pause)).collect()
        };
        let interval = Some(Duration::from_millis(10));
        assert_eq!(flow(&bursts(5, 50), interval).early, 0.0, "five each 50 ms");
        assert!(flow(&bursts(6, 50), interval).early > 0.5, "six each 50 ms are 120 a second");
        assert_eq!(flow(&bursts(6, 1), None).early, 0.0);
    }

    #[test]
    fn a_host_that_was_idle_half_the_time_was_half_used() {
        let pacing = pacing(&log(&[(0, 0), (0, 200), (0, 800)]), Duration::from_millis(200));
        assert!((pacing.used - 0.5).abs() < 1e-9, "{pacing:?}");
    }
}

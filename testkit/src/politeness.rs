//! How politely hosts were asked, by the log of those who were asked.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::world::Arrival;

/// How a crowd of hosts that share one pace was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pacing {
    /// Requests.
    pub requests: usize,
    /// From one request of a host to its next.
    pub gaps: usize,
    /// Gaps shorter than 85 % of the interval.
    pub short: usize,
    /// The shortest of all.
    pub shortest: Duration,
    /// Of what the pace allows from the first request to the last of each host, how much was asked for.
    pub used: f64,
}

impl Pacing {
    /// The share of gaps that are too short.
    pub fn short_share(&self) -> f64 {
        self.short as f64 / self.gaps.max(1) as f64
    }
}

/// How the hosts in `log` were asked, each of which may be asked once each `interval`.
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
    fn a_host_that_was_idle_half_the_time_was_half_used() {
        let pacing = pacing(&log(&[(0, 0), (0, 200), (0, 800)]), Duration::from_millis(200));
        assert!((pacing.used - 0.5).abs() < 1e-9, "{pacing:?}");
    }
}

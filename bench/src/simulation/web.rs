//! The web: hosts of very different size, and servers of very different speed.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::scenario::{Order, Scenario};

/// Returns the host of each URL, in the producer's order.
pub(super) fn urls(scenario: &Scenario) -> Vec<u32> {
    let mut chance = StdRng::seed_from_u64(scenario.seed);
    let weight = |host: u32| f64::from(host + 1).powf(-scenario.skew);
    let all: f64 = (0..scenario.hosts).map(weight).sum();
    let size = |host| (f64::from(scenario.urls) * weight(host) / all).round().max(1.0) as usize;
    let mut hosts: Vec<u32> = (0..scenario.hosts).collect();
    if scenario.order == Order::Sites {
        hosts.shuffle(&mut chance);
    }
    let mut urls = Vec::with_capacity(scenario.urls as usize + scenario.hosts as usize);
    urls.extend(hosts.into_iter().flat_map(|host| std::iter::repeat_n(host, size(host))));
    if scenario.order == Order::Mixed {
        urls.shuffle(&mut chance);
    }
    urls
}

/// Returns the time of a response.
pub(super) fn response(scenario: &Scenario, chance: &mut StdRng) -> Duration {
    // In (0, 1]: Pareto's law by inversion.
    let slower = 1.0 - chance.random::<f64>();
    let factor = slower.powf(-1.0 / scenario.tail);
    Duration::from_secs_f64((scenario.fastest.as_secs_f64() * factor).min(scenario.timeout.as_secs_f64()))
}

/// Returns the mean time of a response.
fn mean_response(scenario: &Scenario) -> Duration {
    let Scenario { fastest, timeout, tail, .. } = scenario;
    let cut = (fastest.as_secs_f64() / timeout.as_secs_f64()).powf(tail - 1.0);
    fastest.mul_f64(1.0 + (1.0 - cut) / (tail - 1.0))
}

/// Returns the pages per second that all fetch permits give if none is ever idle.
pub fn capacity(scenario: &Scenario) -> f64 {
    let slots = f64::from(scenario.workers) * f64::from(scenario.concurrency);
    slots / mean_response(scenario).as_secs_f64()
}

//! Scenarios of the simulation.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Serialize, Serializer};
use trawl_common::politeness::gcra::Pace;
use trawl_common::politeness::rate::Rate;
use trawl_common::settings::{Politeness, Settings};

/// A fleet, and the web that it crawls.
#[derive(Clone, Debug, Serialize)]
pub struct Scenario {
    /// Number of workers.
    pub workers: u32,
    /// `worker.concurrency`: the fetch permits of each worker.
    pub concurrency: u16,
    /// `worker.prefetch`: the messages of each queue that the broker sends each worker ahead of need.
    pub prefetch: u16,
    /// Time that a worker takes to claim the URL of a message.
    #[serde(serialize_with = "seconds")]
    pub handling: Duration,
    /// Number of URLs that the producer reads, admits and publishes per second.
    pub feed: u32,
    /// `politeness.rate`.
    pub rate: Rate,
    /// `producer.max_backlog`.
    pub backlog: u64,
    /// Time that a URL may wait from its admission; `None` for no limit.
    #[serde(serialize_with = "maybe_seconds")]
    pub ttl: Option<Duration>,
    /// Number of hosts.
    pub hosts: u32,
    /// Approximate number of URLs on all hosts.
    pub urls: u32,
    /// The exponent of Zipf's law: the share of the host of rank r in the URLs is proportional to 1 / r^skew.
    pub skew: f64,
    /// The order in which the producer reads them.
    pub order: Order,
    /// Time of the fastest response; the others follow Pareto's law with the exponent [`Scenario::tail`].
    #[serde(serialize_with = "seconds")]
    pub fastest: Duration,
    /// The exponent of Pareto's law: the share x^-tail of the responses takes longer than x times the fastest.
    pub tail: f64,
    /// `fetch.timeout`: the time of the slowest response.
    #[serde(serialize_with = "seconds")]
    pub timeout: Duration,
    /// The seed of the random numbers: equal scenarios give equal reports.
    pub seed: u64,
}

impl Default for Scenario {
    /// Returns trawl's default settings, on a million hosts.
    fn default() -> Self {
        let Settings { worker, politeness, producer, fetch, .. } = Settings::default();
        Self {
            workers: 10,
            concurrency: worker.concurrency,
            prefetch: worker.prefetch,
            handling: Duration::from_micros(100),
            feed: 15_000,
            rate: politeness.rate,
            backlog: producer.max_backlog.get(),
            ttl: None,
            hosts: 1_000_000,
            urls: 10_000_000,
            skew: 0.8,
            order: Order::Mixed,
            fastest: Duration::from_millis(150),
            tail: 1.6,
            timeout: fetch.timeout,
            seed: 1,
        }
    }
}

impl Scenario {
    /// Returns the pace of each host, from settings with this rate.
    pub fn pace(&self) -> Pace {
        let politeness = Politeness { rate: self.rate, ..Politeness::default() };
        let url: trawl_common::web::url::CanonicalUrl =
            "http://host.example/".parse().expect("a URL that is written here");
        politeness.host_policy(&url.host()).pace
    }
}

/// The order in which the producer reads URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The URLs of all hosts are mixed.
    Mixed,
    /// All URLs of one host, then all of the next.
    Sites,
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

fn maybe_seconds<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|duration| duration.as_secs_f64()).serialize(serializer)
}

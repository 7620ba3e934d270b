//! What is simulated.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Serialize, Serializer};
use trawl_common::politeness::gcra::Pace;
use trawl_common::politeness::rate::Rate;
use trawl_common::settings::{Politeness, Settings};

/// A fleet, and the web that it crawls.
#[derive(Clone, Debug, Serialize)]
pub struct Scenario {
    /// How many workers.
    pub workers: u32,
    /// `worker.concurrency`: the fetch permits of each.
    pub concurrency: u16,
    /// `worker.prefetch`: the messages of each queue that the broker sends each ahead of need.
    pub prefetch: u16,
    /// How long a worker takes to claim the URL of a message.
    #[serde(serialize_with = "seconds")]
    pub handling: Duration,
    /// How many URLs the producer reads, admits and publishes in a second.
    pub feed: u32,
    /// `politeness.rate`.
    pub rate: Rate,
    /// `producer.max_backlog`.
    pub backlog: u64,
    /// How long a URL may wait, from its admission; for ever without it.
    #[serde(serialize_with = "maybe_seconds")]
    pub ttl: Option<Duration>,
    /// How many hosts.
    pub hosts: u32,
    /// How many URLs on all of them, about.
    pub urls: u32,
    /// The exponent of Zipf's law: the host of rank r has a share of the URLs in proportion to 1 / r^skew.
    pub skew: f64,
    /// The order in which the producer reads them.
    pub order: Order,
    /// The fastest response; the others follow Pareto's law with the exponent [`Scenario::tail`].
    #[serde(serialize_with = "seconds")]
    pub fastest: Duration,
    /// The exponent of Pareto's law: of x times the fastest response, the share x^-tail is slower.
    pub tail: f64,
    /// `fetch.timeout`: no response is slower.
    #[serde(serialize_with = "seconds")]
    pub timeout: Duration,
    /// What chance begins with: the same scenario has the same report.
    pub seed: u64,
}

impl Default for Scenario {
    /// As trawl's settings are by default, on a million hosts.
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
    /// How each host is asked: as settings with this rate say.
    pub fn pace(&self) -> Pace {
        let politeness = Politeness { rate: self.rate, ..Politeness::default() };
        let url: trawl_common::web::url::CanonicalUrl =
            "http://host.example/".parse().expect("a URL that is written here");
        politeness.host_policy(&url.host()).pace
    }
}

/// In which order the producer reads URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// All hosts' URLs are mixed.
    Mixed,
    /// One host's URLs after the other's.
    Sites,
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

fn maybe_seconds<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|duration| duration.as_secs_f64()).serialize(serializer)
}

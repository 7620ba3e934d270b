//! Settings: defaults <- `trawl.toml` <- environment <- flags, each key checked.

mod adhoc;
mod api;
mod browser;
mod bytes;
mod cache;
mod check;
mod dedup;
#[cfg(test)]
mod documented;
mod events;
mod fetch;
mod given;
mod heartbeat;
mod history;
mod items;
mod jobs;
mod keep;
mod key;
mod load;
mod log;
mod manners;
mod masked;
mod metrics;
mod network;
mod node;
mod politeness;
mod ports;
mod producer;
mod projects;
mod queues;
mod rabbitmq;
mod recovery;
mod redis;
mod secret;
mod secret_hash;
mod secrets;
pub(crate) mod sinks;
mod spiders;
mod tracing;
mod tree;
mod urls;
mod variables;
mod webhooks;
mod worker;

use std::path::PathBuf;

pub use adhoc::Adhoc;
pub use api::{Api, ApiToken, NoToken, Proof};
pub use browser::Browser;
pub use cache::{Cache, Encoding};
pub use dedup::Dedup;
pub use events::Events;
pub use fetch::Fetch;
pub use heartbeat::Unnoticed;
pub use history::History;
pub use items::Items;
pub use jobs::Jobs;
pub use keep::Keep;
pub use key::{FleetKey, NoKey};
pub use load::{Invalid, Source};
pub use log::{Log, LogFormat};
pub use manners::NAMELESS;
pub use metrics::Metrics;
pub use network::{Network, NoNetwork};
pub use node::{NoNode, Node};
pub use politeness::{HostPolicy, HostRule, NoHost, Politeness, RobotsFor, Share};
pub use ports::{NoPortRange, PortRange};
pub use producer::{IfRunning, Producer};
pub use projects::{Projects, Protocol};
pub use queues::{Acks, Failed, LaneSettings, QueueName, QueueType, Queues, Topology};
pub use rabbitmq::RabbitMq;
pub use recovery::Recovery;
pub use redis::Redis;
pub use secret::ServerUrl;
pub use secret_hash::{NoHash, SecretHash, WeakSecret};
pub use secrets::{NoKeyInFile, Secrets};
use serde::{Deserialize, Serialize};
pub use sinks::{Compress, FileSink, SinkSettings, is_system_column, path_below};
pub use spiders::Spiders;
pub use tracing::Tracing;
pub use urls::{NoParam, Param, Urls};
pub use webhooks::{NoSecret, Webhook, WebhookSecret};
pub use worker::Worker;

use crate::duration::minutes;
use crate::frontier::lane::Lane;
pub use crate::frontier::retry::Retry;
use crate::frontier::route::{Rule, When};

/// All settings of all programs. `trawl.toml` in the repository documents every key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The folder with the files of spiders.
    pub spiders_dir: PathBuf,
    /// Limits for spiders whose files came with a crawl on the worker's machine.
    #[serde(default)]
    pub spiders: Spiders,
    /// The broker.
    pub rabbitmq: RabbitMq,
    /// The store.
    pub redis: Redis,
    /// The response cache.
    pub cache: Cache,
    /// The lanes.
    pub queues: Queues,
    /// URLs that other programs publish.
    pub adhoc: Adhoc,
    /// Politeness towards hosts.
    pub politeness: Politeness,
    /// Which URLs count as equal.
    pub urls: Urls,
    /// Fetching of pages.
    pub fetch: Fetch,
    /// Browsers that render pages.
    pub browser: Browser,
    /// Limits of sources.
    pub producer: Producer,
    /// The failures that are retried.
    pub retry: Retry,
    /// The worker's own limits.
    pub worker: Worker,
    /// The times after which something counts as lost.
    pub recovery: Recovery,
    /// Running of jobs.
    pub jobs: Jobs,
    /// The code of projects, as it comes from Git.
    #[serde(default)]
    pub projects: Projects,
    /// The key that seals the secrets of projects.
    #[serde(default)]
    pub secrets: Secrets,
    /// How long, and how many, crawls that are over are kept.
    pub keep: Keep,
    /// The HTTP API.
    pub api: Api,
    /// The events before a crawl's end.
    pub events: Events,
    /// The permanent history of crawls, jobs, pages and the log.
    #[serde(default)]
    pub history: History,
    /// URLs that events are posted to.
    #[serde(default)]
    pub webhooks: Vec<Webhook>,
    /// Fields of every page, and how long the stream keeps items.
    pub items: Items,
    /// The sinks of spiders without their own. If empty, items go to the stream in a fleet, and to a file in `trawl
    /// crawl`.
    #[serde(default)]
    pub sinks: Vec<SinkSettings>,
    /// The rules that route URLs to lanes; the first match decides.
    pub route: Vec<Rule>,
    /// Metrics of each process.
    pub metrics: Metrics,
    /// The destination of URL traces.
    pub tracing: Tracing,
    /// Logging.
    pub log: Log,
}

impl Settings {
    /// The response cache's own Redis, if it has one: a single server, never a cluster.
    pub fn cache_server(&self) -> Option<Redis> {
        let url = self.cache.url.clone()?;
        Some(Redis { url, ca: self.redis.ca.clone(), ..Redis::default() })
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            spiders_dir: "spiders".into(),
            spiders: Spiders::default(),
            rabbitmq: RabbitMq::default(),
            redis: Redis::default(),
            cache: Cache::default(),
            queues: Queues::default(),
            adhoc: Adhoc::default(),
            politeness: Politeness::default(),
            urls: Urls::default(),
            fetch: Fetch::default(),
            browser: Browser::default(),
            producer: Producer::default(),
            retry: Retry::default(),
            worker: Worker::default(),
            recovery: Recovery::default(),
            jobs: Jobs::default(),
            projects: Projects::default(),
            secrets: Secrets::default(),
            keep: Keep::default(),
            api: Api::default(),
            events: Events::default(),
            history: History::default(),
            webhooks: Vec::new(),
            items: Items::default(),
            sinks: Vec::new(),
            route: default_rules(),
            metrics: Metrics::default(),
            tracing: Tracing::default(),
            log: Log::default(),
        }
    }
}

fn default_rules() -> Vec<Rule> {
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect();
    let test_service = When { host: words(&["httpbin.org"]), ..When::default() };
    let fresh = When {
        url: words(&["news", "live"]),
        changefreq: words(&["always", "hourly"]),
        news: true,
        ..When::default()
    };
    vec![
        Rule { when: Some(test_service), lane: Lane::Priority, ttl: Some(minutes(5)) },
        Rule { when: Some(fresh), lane: Lane::Priority, ttl: None },
        Rule { when: None, lane: Lane::Bulk, ttl: None },
    ]
}

//! Settings: defaults <- `trawl.toml` <- environment <- flags, each key checked.

mod adhoc;
mod api;
mod bytes;
mod check;
mod dedup;
#[cfg(test)]
mod documented;
mod events;
mod heartbeat;
mod history;
mod jobs;
mod key;
mod load;
mod masked;
mod metrics;
mod network;
mod node;
mod politeness;
mod ports;
mod producer;
mod queues;
mod secret;
pub(crate) mod sinks;
mod tree;
mod urls;
mod webhooks;

use std::path::PathBuf;
use std::time::Duration;

pub use adhoc::Adhoc;
pub use api::{Api, ApiToken, NoToken};
use bytes::exact_bytes;
use bytesize::ByteSize;
pub use dedup::Dedup;
pub use events::Events;
pub use heartbeat::Unnoticed;
pub use history::History;
pub use jobs::Jobs;
pub use key::{FleetKey, NoKey};
pub use load::{Invalid, Source};
pub use metrics::Metrics;
pub use network::{Network, NoNetwork};
pub use node::{NoNode, Node};
pub use politeness::{HostPolicy, HostRule, NoHost, Politeness, RobotsFor, Share};
pub use ports::{NoPortRange, PortRange};
pub use producer::{IfRunning, Producer};
pub use queues::{Acks, Failed, LaneSettings, QueueName, QueueType, Queues, Topology};
pub use secret::ServerUrl;
use serde::{Deserialize, Serialize};
pub use sinks::{Compress, Folder, Lines, SinkSettings};
pub use urls::{NoParam, Param, Urls};
pub use webhooks::{NoSecret, Webhook, WebhookSecret};

use crate::duration::{self, minutes};
use crate::frontier::lane::Lane;
use crate::frontier::outcome::Class;
use crate::frontier::route::{Rule, When};
use crate::politeness::rate::Rate;
use crate::politeness::robots::RobotsName;

/// All settings of all programs. `trawl.toml` in the repository documents every key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The folder with the files of spiders.
    pub spiders_dir: PathBuf,
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
    /// How hosts are asked.
    pub politeness: Politeness,
    /// Which URLs are one.
    pub urls: Urls,
    /// How pages are fetched.
    pub fetch: Fetch,
    /// How much sources may ask for.
    pub producer: Producer,
    /// What is tried again.
    pub retry: Retry,
    /// The worker's own limits.
    pub worker: Worker,
    /// When something counts as lost.
    pub recovery: Recovery,
    /// How jobs are run.
    pub jobs: Jobs,
    /// What is kept of crawls that are over.
    pub keep: Keep,
    /// The HTTP API.
    pub api: Api,
    /// When crawls are told of that have not ended.
    pub events: Events,
    /// What is kept for good of crawls, jobs and pages.
    #[serde(default)]
    pub history: History,
    /// Who is told of events by HTTP.
    #[serde(default)]
    pub webhooks: Vec<Webhook>,
    /// What is written of each page, and how long the stream keeps it.
    pub items: Items,
    /// Where items go of a spider that does not say it itself; if it is nowhere, then to the stream in a fleet, and to a file
    /// in `trawl crawl`.
    #[serde(default)]
    pub sinks: Vec<SinkSettings>,
    /// The rules that route URLs to lanes; the first that fits decides.
    pub route: Vec<Rule>,
    /// What processes measure.
    pub metrics: Metrics,
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

/// `[rabbitmq]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RabbitMq {
    /// `amqp://user:password@host:port/vhost`, or `amqps://` for TLS.
    pub url: ServerUrl,
    /// Further nodes of the same cluster, tried in turn when one is away.
    #[serde(default)]
    pub nodes: Vec<Node>,
    /// A PEM file with the certificates to trust in place of the system's.
    pub ca: Option<PathBuf>,
    /// What the fleet's messages are signed with. Without it, any client of the broker passes for trawl.
    pub key: Option<FleetKey>,
    /// What was the key before: messages that it signed still count.
    #[serde(default)]
    pub former_keys: Vec<FleetKey>,
}

/// `[redis]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redis {
    /// `redis://user:password@host:port/database`, or `rediss://` for TLS.
    pub url: ServerUrl,
    /// Whether the URL names one node of a Redis Cluster; the others are discovered.
    pub cluster: bool,
    /// Further nodes to discover the cluster from when the first is away.
    #[serde(default)]
    pub nodes: Vec<Node>,
    /// A PEM file with the certificates to trust in place of the system's; for the cache's Redis too.
    pub ca: Option<PathBuf>,
    /// The form that the dedup of a spider has which has none yet.
    pub dedup: Dedup,
    /// What all robots.txt files may take.
    #[serde(serialize_with = "exact_bytes")]
    pub max_robots_bytes: ByteSize,
}

/// `[cache]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// A Redis of its own for responses; without one, `redis.url`.
    pub url: Option<ServerUrl>,
    /// How long a response is kept at least; `0s` turns the cache off.
    #[serde(with = "duration")]
    pub ttl: Duration,
    /// How long a response is kept at most whose origin allows it.
    #[serde(with = "duration")]
    pub max_ttl: Duration,
    /// What all responses may take in a Redis that throws none away by itself.
    #[serde(serialize_with = "exact_bytes")]
    pub max_bytes: ByteSize,
    /// How a response is stored.
    pub encoding: Encoding,
}

/// `cache.encoding`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// As it was received, so that `redis-cli` shows the page.
    Plain,
    /// Compressed: about a fifth of the memory.
    #[default]
    Zstd,
}

impl Cache {
    /// For how long a response is kept that is fresh for `lifetime`.
    pub fn keeps(&self, lifetime: Duration) -> Duration {
        lifetime.min(self.max_ttl).max(self.ttl)
    }
}

/// `[fetch]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fetch {
    /// Whether loopback, private and link-local addresses may be asked.
    pub allow_private: bool,
    /// Networks that may be asked although they are not public.
    #[serde(default)]
    pub allow_networks: Vec<Network>,
    /// The ports that may be asked.
    pub ports: Vec<PortRange>,
    /// A proxy to ask through, `http://user:password@host:port` or `socks5://`. It may be anywhere; what it is asked for
    /// may not.
    pub proxy: Option<ServerUrl>,
    /// What one process asks of all hosts together, at most.
    pub max_rate: Rate,
    /// For the whole of one request, body included.
    #[serde(with = "duration")]
    pub timeout: Duration,
    /// For the connection alone.
    #[serde(with = "duration")]
    pub connect_timeout: Duration,
    /// The largest body that is read, decoded.
    #[serde(serialize_with = "exact_bytes")]
    pub max_body: ByteSize,
    /// The name sent to servers; `contact` is appended.
    pub user_agent: String,
    /// A URL or address at which the crawl's owner can be reached.
    pub contact: Option<String>,
    /// The name by which a robots.txt speaks to this crawler, in place of the one that the user agent tells.
    pub robots_name: Option<RobotsName>,
}

impl Fetch {
    /// The `User-Agent` as sent: the crawler's name, and the contact in brackets.
    pub fn user_agent_line(&self) -> String {
        match &self.contact {
            Some(contact) => format!("{} (+{contact})", self.user_agent),
            None => self.user_agent.clone(),
        }
    }

    /// The name by which a robots.txt speaks to this crawler: as set, or as the user agent tells; `None` where neither does.
    pub fn robots_name(&self) -> Option<RobotsName> {
        self.robots_name.clone().or_else(|| RobotsName::of_user_agent(&self.user_agent))
    }
}

/// `[retry]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// How often a URL is tried again after its first failure.
    pub max: u32,
    /// The HTTP statuses that are worth another try; all others but successes are final.
    pub statuses: Vec<u16>,
    /// The kinds of error that are; the others are final.
    pub errors: Vec<Class>,
    /// The longest wait before the first retry; it doubles with each. A `Retry-After` is waited for, up to 24 h.
    #[serde(with = "duration")]
    pub backoff: Duration,
}

impl Retry {
    /// How long it is kept that a robots.txt cannot be read, where the fleet keeps it and once more in a worker's memory:
    /// together less than a URL waits for its next attempt, so that each attempt has a new answer.
    pub fn robots_again(&self) -> Duration {
        (self.backoff / 5).max(Duration::from_millis(50))
    }
}

/// `[worker]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worker {
    /// Pages fetched at once.
    pub concurrency: u16,
    /// Messages of each lane taken from the broker ahead of need.
    pub prefetch: u16,
    /// What pages in hand may take together: one half for bodies of more than 256 KiB, the other for the trees that are built
    /// of them.
    #[serde(serialize_with = "exact_bytes")]
    pub page_memory: ByteSize,
    /// How many tasks are done at once by the programs of spiders; 0 for a worker that takes no tasks.
    pub handlers: u16,
    /// How long a worker that is asked to stop may take to finish what it has begun.
    #[serde(with = "duration")]
    pub shutdown_timeout: Duration,
}

/// `[recovery]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recovery {
    /// After how long without a sign something counts as lost: a message that is nowhere, a producer that
    /// reads sources; a worker that holds a URL after a quarter of it. All programs of a fleet need the same.
    #[serde(with = "duration")]
    pub patience: Duration,
}

/// `[keep]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keep {
    /// How many crawls that are over a fleet keeps with their counters and dead letters, and how many jobs: the last ones, and
    /// all that ended within a day.
    pub crawls: usize,
    /// How long the dead letters of a crawl that is over are kept in a fleet.
    #[serde(with = "duration")]
    pub failed: Duration,
}

/// `[items]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Items {
    /// How long the stream keeps items; for ever without it.
    #[serde(default, with = "duration::optional")]
    pub retention: Option<Duration>,
    /// How large the stream may grow before the oldest items go; any size without it.
    pub max_size: Option<ByteSize>,
    /// Whether items list the page's links, not only their count.
    pub links: bool,
    /// Further fields by CSS selector, in Scrapy's notation: `price = "span.price::text"`.
    #[serde(default)]
    pub fields: std::collections::BTreeMap<String, String>,
}

/// `[log]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// `error`, `warn`, `info`, `debug`, `trace`, or a filter by module.
    pub level: String,
    /// Text for people, or JSON.
    pub format: LogFormat,
    /// Whether workers log each URL: when its fetch begins, and what became of it.
    pub urls: bool,
}

/// `log.format`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One readable line an event.
    Text,
    /// One JSON object an event.
    Json,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            spiders_dir: "spiders".into(),
            rabbitmq: RabbitMq::default(),
            redis: Redis::default(),
            cache: Cache::default(),
            queues: Queues::default(),
            adhoc: Adhoc::default(),
            politeness: Politeness::default(),
            urls: Urls::default(),
            fetch: Fetch::default(),
            producer: Producer::default(),
            retry: Retry::default(),
            worker: Worker::default(),
            recovery: Recovery::default(),
            jobs: Jobs::default(),
            keep: Keep::default(),
            api: Api::default(),
            events: Events::default(),
            history: History::default(),
            webhooks: Vec::new(),
            items: Items::default(),
            sinks: Vec::new(),
            route: default_rules(),
            metrics: Metrics::default(),
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

impl Default for RabbitMq {
    fn default() -> Self {
        Self {
            url: ServerUrl::new("amqp://127.0.0.1:5672/%2f"),
            nodes: Vec::new(),
            ca: None,
            key: None,
            former_keys: Vec::new(),
        }
    }
}

impl Default for Redis {
    fn default() -> Self {
        Self {
            url: ServerUrl::new("redis://127.0.0.1:6379/0"),
            cluster: false,
            nodes: Vec::new(),
            ca: None,
            dedup: Dedup::Plain,
            max_robots_bytes: ByteSize::mb(100),
        }
    }
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            url: None,
            ttl: minutes(1),
            max_ttl: minutes(24 * 60),
            max_bytes: ByteSize::mb(100),
            encoding: Encoding::default(),
        }
    }
}

impl Default for Fetch {
    fn default() -> Self {
        Self {
            allow_private: false,
            allow_networks: Vec::new(),
            ports: vec![
                PortRange::range(80, 80),
                PortRange::range(443, 443),
                PortRange::range(1024, u16::MAX),
            ],
            proxy: None,
            max_rate: Rate::Unlimited,
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            max_body: ByteSize::mb(10),
            user_agent: concat!("trawl/", env!("CARGO_PKG_VERSION")).to_owned(),
            contact: None,
            robots_name: None,
        }
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max: 3,
            statuses: vec![408, 425, 429, 500, 502, 503, 504],
            errors: vec![Class::Timeout, Class::Dns, Class::Connect, Class::Tls, Class::Body, Class::Robots],
            backoff: Duration::from_secs(10),
        }
    }
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            concurrency: 64,
            prefetch: 256,
            page_memory: ByteSize::mb(512),
            handlers: 4,
            shutdown_timeout: Duration::from_secs(25),
        }
    }
}

impl Default for Recovery {
    fn default() -> Self {
        Self { patience: minutes(1) }
    }
}

impl Default for Keep {
    fn default() -> Self {
        Self { crawls: 100, failed: minutes(30 * 24 * 60) }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::Text, urls: false }
    }
}

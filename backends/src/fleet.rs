//! The adapters of a fleet: RabbitMQ and Redis.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::info;
use trawl_common::finding::Finding;
use trawl_common::health::Health;
use trawl_common::names::WorkerId;
use trawl_common::ports::{Engine, Error, ErrorKind, History, Jobs, Ports, Result, Schedules, SpiderStore};
use trawl_common::projects::Keeper;
use trawl_common::settings::{Cache, Redis, Settings, SinkSettings};
use trawl_engine::Coordinator;

use crate::history::PostgresHistory;
use crate::rabbitmq::{self, ControlLog, JobWakeUps, Journal, QueueDepths, RabbitMq};
use crate::redis::{
    self, Link, RedisCache, RedisHosts, RedisJobs, RedisJournal, RedisLogs, RedisPages, RedisProjects,
    RedisRecords, RedisSchedules, RedisSessions, RedisSpiderStore,
};
use crate::sinks::Sinks;

/// Time that a program waits for servers that start at the same time.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(90);

/// Connects to both servers, trying again with back-off until they are up or a minute and a half has passed. A
/// refusal (a password, a queue with other arguments) fails at once.
pub async fn connect(settings: &Settings, worker: &WorkerId) -> Result<Ports> {
    let broker = settings
        .rabbitmq
        .noticing(settings.recovery.lost_after)
        .map_err(|unnoticed| Error::new(ErrorKind::Refused, unnoticed))?;
    let key = settings.secrets.key().map_err(|error| Error::new(ErrorKind::Refused, error))?;
    let store = connected("redis", || redis::connect(&settings.redis)).await?;
    let cache = match settings.cache_server() {
        Some(server) => {
            cache_on(connected("cache", || redis::connect(&server)).await?, &settings.cache).await
        }
        None => cache_on(store.clone(), &settings.cache).await,
    };
    retry_at_start("reading the version of the data", || redis::check_schema(&store)).await?;
    redis::warn_of_eviction(&store).await;
    let asked = asked_of(settings, store.clone())?;
    let (records, hosts) = records_beside(settings, store.clone(), Some(asked.journal.clone()))?;
    retry_at_start("reading the clock of Redis", || records.check_clock()).await?;
    let Settings { queues, items, .. } = settings;
    let queue = connected("rabbitmq", || RabbitMq::connect(&broker, queues, items)).await?;
    let queue = Arc::new(queue.open_to_strangers(&settings.adhoc.spiders));
    records.seal_log().await;
    asked.journal.seal().await;
    let sinks = match &settings.sinks[..] {
        [] => vec![SinkSettings::Stream],
        named => named.to_vec(),
    };
    let logs = Arc::new(RedisLogs::new(store.clone(), &settings.log));
    let ended_tasks = Arc::new(RedisLogs::of_ended_tasks(store.clone(), &settings.log));
    let pages = Arc::new(RedisPages::new(store.clone()));
    let sessions = Arc::new(RedisSessions::new(store.clone()));
    let history = match &settings.history.postgres {
        Some(url) => Some(Arc::new(PostgresHistory::new(url)?) as Arc<dyn History>),
        None => None,
    };
    let engine =
        Coordinator::new(records.clone(), queue.clone(), pages.clone()).with_history(history.clone());
    Ok(Ports {
        engine: Arc::new(engine),
        control: records.clone(),
        stats: records,
        hosts,
        cache: Arc::new(cache),
        jobs: asked.jobs,
        spider_store: asked.spider_store,
        schedules: asked.schedules,
        grants: Arc::new(Keeper::new(Arc::new(RedisProjects::new(store.clone())), key)),
        pages,
        sessions,
        sink_factory: Arc::new(Sinks::for_fleet(worker.clone(), sinks, queue, &settings.fetch)),
        logs,
        ended_tasks,
        history,
    })
}

/// Creates the engine that carries URLs between these records and RabbitMQ. Connects to RabbitMQ once.
pub async fn engine_of(
    settings: &Settings,
    records: Arc<RedisRecords>,
    store: Link,
) -> Result<Arc<dyn Engine>> {
    let Settings { rabbitmq, queues, items, .. } = settings;
    let broker = Arc::new(RabbitMq::connect(rabbitmq, queues, items).await?);
    Ok(Arc::new(Coordinator::new(records, broker, Arc::new(RedisPages::new(store)))))
}

/// Connects to the servers, and returns what is to be said of them before a fleet relies on them.
pub async fn examine(settings: &Settings) -> Vec<Finding> {
    let (store, broker) = tokio::join!(
        redis::examine(&settings.redis),
        rabbitmq::examine(&settings.rabbitmq, &settings.queues)
    );
    let cache = async {
        let connected = redis::connect(&settings.cache_server()?).await;
        connected.err().map(|error| Finding::error("cache", error))
    };
    store.into_iter().chain(cache.await).chain(broker).chain(settings.unsigned()).collect()
}

/// The submissions of people, in Redis and in the journal.
pub struct Asked {
    /// The jobs, with the wake-ups for workers.
    pub jobs: Arc<dyn Jobs>,
    /// The deployed spiders.
    pub spider_store: Arc<dyn SpiderStore>,
    /// The state of cron schedules.
    pub schedules: Arc<dyn Schedules>,
    journal: Arc<RedisJournal>,
}

/// Returns the submissions of the fleet with these settings. RabbitMQ is connected to when it is needed.
pub fn asked_of(settings: &Settings, store: Link) -> Result<Asked> {
    let wake_ups = JobWakeUps::new(&settings.rabbitmq, &settings.queues)?;
    let stream = Journal::new(&settings.rabbitmq, settings.queues.topology)?;
    let journal = Arc::new(RedisJournal::new(store.clone(), stream));
    let jobs = RedisJobs::new(store.clone(), settings.jobs.per_spider).with_wake_ups(Arc::new(wake_ups));
    let spider_store = RedisSpiderStore::new(store.clone()).with_journal(Arc::clone(&journal));
    Ok(Asked {
        jobs: Arc::new(jobs.with_journal(Arc::clone(&journal))),
        spider_store: Arc::new(spider_store),
        schedules: Arc::new(RedisSchedules::new(store).with_journal(Arc::clone(&journal))),
        journal,
    })
}

/// Returns the response cache on this server, within its budget unless the server limits it itself.
async fn cache_on(link: Link, settings: &Cache) -> RedisCache {
    let is_bounded = redis::evicts(&link).await;
    let cache = RedisCache::new(link, settings.encoding);
    match is_bounded {
        true => cache,
        false => cache.within(settings.max_bytes.as_u64()),
    }
}

/// Returns the records of URLs and the schedules of hosts. Operators' commands for them are also written to the
/// broker.
pub fn records_of(settings: &Settings, store: Link) -> Result<(Arc<RedisRecords>, Arc<RedisHosts>)> {
    records_beside(settings, store, None)
}

/// Like [`records_of`]; with a journal, the sweeper maintains it.
fn records_beside(
    settings: &Settings,
    store: Link,
    journal: Option<Arc<RedisJournal>>,
) -> Result<(Arc<RedisRecords>, Arc<RedisHosts>)> {
    let log = Arc::new(ControlLog::new(&settings.rabbitmq, settings.queues.topology)?);
    let Redis { max_robots_bytes, dedup, .. } = settings.redis;
    let hosts = RedisHosts::new(store.clone(), max_robots_bytes.as_u64())
        .with_log(Arc::clone(&log))
        .with_backoffs_from(settings.events.backoff_from);
    let hosts = Arc::new(hosts);
    let records = RedisRecords::new(store, settings.recovery.lost_after, dedup)
        .with_again(settings.adhoc.again)
        .with_keep(settings.keep.clone())
        .with_events(settings.events.clone())
        .with_queues(QueueDepths::new(&settings.rabbitmq)?);
    let records = records.with_log(log, Arc::clone(&hosts));
    let records = match journal {
        Some(journal) => records.with_journal(journal),
        None => records,
    };
    Ok((Arc::new(records), hosts))
}

/// Connects to a server, trying again until it is up or [`STARTUP_TIMEOUT`] has passed.
async fn connected<T, F: Future<Output = Result<T>>>(server: &str, connect: impl Fn() -> F) -> Result<T> {
    let connected = retry_at_start("connecting", connect).await?;
    info!(server, "connected");
    Ok(connected)
}

/// Repeats a call while its server is away, until [`STARTUP_TIMEOUT`] has passed.
async fn retry_at_start<T, F: Future<Output = Result<T>>>(what: &str, call: impl Fn() -> F) -> Result<T> {
    let deadline = CancellationToken::new();
    let health = Health::until(deadline.clone());
    let expiry = async {
        tokio::time::sleep(STARTUP_TIMEOUT).await;
        deadline.cancel();
        std::future::pending().await
    };
    tokio::select! {
        result = health.retry(what, call) => result,
        never = expiry => never,
    }
}

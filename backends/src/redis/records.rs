//! The store of records, and its access to Redis.

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache as Memory;
use redis::FromRedisValue;
use tokio::sync::Mutex;
use trawl_common::names::CrawlRef;
use trawl_common::ports::Result;
use trawl_common::settings::{Adhoc, Dedup, Events, Keep};

use crate::rabbitmq::{ControlLog, QueueDepths};
use crate::redis::crawls::standings::{ENDED_TTL, MAX_ENDED, Standing};
use crate::redis::recovery::broker_backup::BrokerBackup;
use crate::redis::recovery::named::{Named, none_named};
use crate::redis::recovery::sweep_position::SweepPosition;
use crate::redis::scripts::{Clock, Scripts};
use crate::redis::server::eviction::Eviction;
use crate::redis::server::full;
use crate::redis::{Link, RedisHosts, RedisJournal, failed};

/// Number of crawls that a process remembers as indexed.
const MAX_INDEXED: u64 = 10_000;
/// A frontier on Redis.
pub struct RedisRecords {
    pub(crate) redis: Link,
    pub(crate) scripts: Scripts,
    pub(crate) lost_after: Duration,
    /// Time after which a URL that others publish may be requested again.
    pub(crate) again: Duration,
    pub(crate) keep: Keep,
    /// The thresholds for events of crawls that have not ended.
    pub(crate) events: Events,
    pub(crate) position: Mutex<Option<SweepPosition>>,
    /// The backup from which this store restores lost data.
    pub(crate) backup: Option<BrokerBackup>,
    /// The journal, which keeps submissions beside this store.
    pub(crate) journal: Option<Arc<RedisJournal>>,
    /// The source of queue lengths.
    pub(crate) queues: Option<QueueDepths>,
    /// The last time that each crawl that this process works on was put into the index.
    pub(crate) indexed: Memory<CrawlRef, ()>,
    /// The crawls that this process knows to be over and completely handled.
    pub(crate) over: Memory<CrawlRef, Standing>,
    pub(crate) eviction: Eviction,
    pub(crate) named: Named,
}

impl RedisRecords {
    /// Creates the frontier on this connection. After `lost_after` without a sign of life something counts as
    /// lost.
    ///
    /// Whether a spider's seen URLs are a plain set or packed is read from Redis; `dedup` applies to a spider that
    /// has seen nothing yet.
    pub fn new(redis: Link, lost_after: Duration, dedup: Dedup) -> Self {
        Self::with_clock(redis, Clock::SERVER, lost_after, dedup)
    }

    pub(crate) fn with_clock(redis: Link, clock: Clock, lost_after: Duration, dedup: Dedup) -> Self {
        Self {
            redis,
            scripts: Scripts::new(clock, dedup),
            lost_after,
            again: Adhoc::default().again,
            keep: Keep::default(),
            events: Events::default(),
            position: Mutex::default(),
            backup: None,
            journal: None,
            queues: None,
            indexed: Memory::builder().max_capacity(MAX_INDEXED).time_to_live(lost_after / 4).build(),
            over: Memory::builder().max_capacity(MAX_ENDED).time_to_live(ENDED_TTL).build(),
            eviction: Eviction::default(),
            named: none_named(),
        }
    }

    /// Sets the time after which a URL that others publish is admitted again.
    #[must_use]
    pub fn with_again(self, again: Duration) -> Self {
        Self { again, ..self }
    }

    /// Sets the retention of finished crawls.
    #[must_use]
    pub(crate) fn with_keep(self, keep: Keep) -> Self {
        Self { keep, ..self }
    }

    /// Sets the thresholds for events of crawls that have not ended.
    #[must_use]
    pub(crate) fn with_events(self, events: Events) -> Self {
        Self { events, ..self }
    }

    /// Also writes commands for crawls to `log`, and restores lost ones and the blocked hosts from there.
    #[must_use]
    pub fn with_log(self, log: Arc<ControlLog>, hosts: Arc<RedisHosts>) -> Self {
        Self { backup: Some(BrokerBackup::new(log, hosts)), ..self }
    }

    /// Keeps the journal up to date with this store's jobs, deployed spiders and schedules.
    #[must_use]
    pub(crate) fn with_journal(self, journal: Arc<RedisJournal>) -> Self {
        Self { journal: Some(journal), ..self }
    }

    /// Reports the lengths of these queues.
    #[must_use]
    pub fn with_queues(self, queues: QueueDepths) -> Self {
        Self { queues: Some(queues), ..self }
    }

    /// Returns the time that a worker may hold a record without extending its lease.
    pub(crate) fn possession(&self) -> Duration {
        self.lost_after / 4
    }

    /// Writes a small value that stays small, even to a full server.
    pub(crate) async fn write<T: FromRedisValue>(&self, command: &redis::Cmd) -> Result<T> {
        full::anyway(&self.redis, command).await.map_err(failed)
    }
}

//! The store of records, and how it talks to Redis.

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache as Memory;
use redis::FromRedisValue;
use tokio::sync::Mutex;
use trawl_common::names::CrawlRef;
use trawl_common::ports::Result;
use trawl_common::settings::{Adhoc, Dedup, Events, Keep};

use super::eviction::Eviction;
use super::named::{Named, none_named};
use super::round::Round;
use super::scripts::{Clock, Scripts};
use super::second_home::SecondHome;
use super::standings::{OVER, OVER_FOR, Standing};
use super::{Link, RedisHosts, RedisJournal, failed, full};
use crate::rabbitmq::{ControlLog, QueueDepths};

/// Of so many crawls a process remembers that the index knows them.
const INDEXED: u64 = 10_000;
/// A frontier on Redis.
pub struct RedisRecords {
    pub(super) redis: Link,
    pub(super) scripts: Scripts,
    pub(super) lost_after: Duration,
    /// After how long a URL that others publish may be asked for again.
    pub(super) again: Duration,
    pub(super) keep: Keep,
    /// When events of crawls that have not ended are announced.
    pub(super) events: Events,
    pub(super) round: Mutex<Option<Round>>,
    /// Where this store learns what it has forgotten.
    pub(super) second_home: Option<SecondHome>,
    /// Where what was asked for is kept beside this store.
    pub(super) journal: Option<Arc<RedisJournal>>,
    /// Where it is seen how much waits.
    pub(super) queues: Option<QueueDepths>,
    /// When each crawl that this process works on was last put into the index.
    pub(super) indexed: Memory<CrawlRef, ()>,
    /// The crawls of which this process knows that they are over, and all is done about them.
    pub(super) over: Memory<CrawlRef, Standing>,
    pub(super) eviction: Eviction,
    pub(super) named: Named,
}

impl RedisRecords {
    /// On this connection. After `lost_after` without a sign something counts as lost.
    ///
    /// Whether what a spider has seen is a set of URLs or packed is read from Redis; for a spider that has seen nothing yet it is
    /// what `dedup` says.
    pub fn new(redis: Link, lost_after: Duration, dedup: Dedup) -> Self {
        Self::with_clock(redis, Clock::SERVER, lost_after, dedup)
    }

    pub(super) fn with_clock(redis: Link, clock: Clock, lost_after: Duration, dedup: Dedup) -> Self {
        Self {
            redis,
            scripts: Scripts::new(clock, dedup),
            lost_after,
            again: Adhoc::default().again,
            keep: Keep::default(),
            events: Events::default(),
            round: Mutex::default(),
            second_home: None,
            journal: None,
            queues: None,
            indexed: Memory::builder().max_capacity(INDEXED).time_to_live(lost_after / 4).build(),
            over: Memory::builder().max_capacity(OVER).time_to_live(OVER_FOR).build(),
            eviction: Eviction::default(),
            named: none_named(),
        }
    }

    /// The same, which takes a URL that others publish again after so long.
    #[must_use]
    pub fn again_after(self, again: Duration) -> Self {
        Self { again, ..self }
    }

    /// The same, which keeps so much of crawls that are over.
    #[must_use]
    pub fn keeping(self, keep: Keep) -> Self {
        Self { keep, ..self }
    }

    /// The same, which tells of crawls that have not ended when this says so.
    #[must_use]
    pub fn telling(self, events: Events) -> Self {
        Self { events, ..self }
    }

    /// The same, where what is ordered of crawls is also written to `log`, and learnt from there by a store that has lost it,
    /// as is which hosts are blocked.
    #[must_use]
    pub fn with_log(self, log: Arc<ControlLog>, hosts: Arc<RedisHosts>) -> Self {
        Self { second_home: Some(SecondHome::new(log, hosts)), ..self }
    }

    /// The same, which sees to it that the journal has what this store has of jobs, deployed spiders and schedules.
    #[must_use]
    pub fn with_journal(self, journal: Arc<RedisJournal>) -> Self {
        Self { journal: Some(journal), ..self }
    }

    /// The same, which tells how much waits in these queues.
    #[must_use]
    pub fn looking_at(self, queues: QueueDepths) -> Self {
        Self { queues: Some(queues), ..self }
    }

    /// How long a worker may hold a record without keeping it.
    pub(super) fn possession(&self) -> Duration {
        self.lost_after / 4
    }

    /// Writes what is small and stays so, even to a server that is full.
    pub(super) async fn write<T: FromRedisValue>(&self, command: &redis::Cmd) -> Result<T> {
        full::anyway(&self.redis, command).await.map_err(failed)
    }
}

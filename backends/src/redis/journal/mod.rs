//! Keeps the store and the stream `journal` consistent: the store restores jobs, deployed spiders and cron schedules
//! from the stream, and the stream is completed from the store.
//!
//! A store that was emptied or restarted, or whose server has taken over from another, is behind: it may lack confirmed
//! changes. Scripts of jobs refuse to run there, so callers apply the journal first. Entries that the stream has lost
//! are written to it again by the sweeper.

pub(crate) mod restore;

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use redis::{RedisError, ScriptInvocation};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};
use tracing::{debug, info};
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::time::UnixMs;

use crate::journal::Record;
use crate::rabbitmq::Journal;
use crate::redis::scripts::JournalScripts;
use crate::redis::server::full;
use crate::redis::{Link, RedisRecords, failed, has_code, keys};

/// Lease of the process that applies the journal. If it lapses, another process applies it too, which is harmless.
const LEASE: Duration = Duration::from_secs(60);

/// How long to wait for another process that applies the journal.
const LEASE_TIMEOUT: Duration = Duration::from_secs(120);

/// Interval at which to check whether that process has finished.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Interval at which the stream is compared with the store even if it cannot have lost anything: entries that still
/// hold are written again before they are too old to be kept.
const COMPARE_INTERVAL: Duration = Duration::from_secs(6 * 3600);

/// The journal of a store.
pub struct RedisJournal {
    pub(crate) redis: Link,
    pub(crate) stream: Journal,
    scripts: JournalScripts,
    /// Held while this process applies the journal: one task at a time.
    reading: Mutex<()>,
    completed: Mutex<Option<Instant>>,
}

impl RedisJournal {
    /// Creates the journal of the store behind this connection, kept in `stream`.
    pub fn new(redis: Link, stream: Journal) -> Self {
        let (reading, completed) = Default::default();
        Self { redis, stream, scripts: JournalScripts::new(), reading, completed }
    }

    /// From now on, only signed entries count, if the fleet has a key.
    pub(crate) async fn seal(&self) {
        self.stream.seal().await;
    }

    /// Appends records; they are durable when this returns.
    pub(crate) async fn append(&self, records: impl IntoIterator<Item = Record> + Send) -> Result<()> {
        self.stream.append(records).await
    }

    /// Applies the journal to the store, if the store is behind.
    pub(crate) fn catch_up(&self) -> BoxFuture<'_, Result<()>> {
        let catching_up = async {
            if !self.look().await?.is_behind {
                return Ok(());
            }
            let _turn = self.reading.lock().await;
            let deadline = Instant::now() + LEASE_TIMEOUT;
            loop {
                let now = self.look().await?;
                if !now.is_behind || self.try_take_in(&now.run).await? {
                    return Ok(());
                }
                if Instant::now() > deadline {
                    let text =
                        "another process has been taking in the stream journal for minutes: is it stopped?";
                    return Err(Error::new(ErrorKind::Unavailable, text));
                }
                sleep(CHECK_INTERVAL).await;
            }
        };
        catching_up.boxed()
    }

    async fn look(&self) -> Result<Standing> {
        let (run, taken, is_behind) = self.redis.run(&self.scripts.behind.key(keys::JOURNAL)).await?;
        Ok(Standing { run, taken, is_behind })
    }

    /// Tries to apply the journal. Returns whether the store is no longer behind.
    async fn try_take_in(&self, run: &str) -> Result<bool> {
        let lease = format!("{:032x}", rand::random::<u128>());
        let mut set = redis::cmd("SET");
        set.arg(keys::RESTORING).arg(&lease).arg("NX").arg("PX").arg(LEASE.as_millis() as u64);
        let taken: Option<String> = full::anyway(&self.redis, &set).await.map_err(failed)?;
        if taken.is_none() {
            return Ok(false);
        }
        let taken_in = self.take_in(&lease, run).await;
        if !matches!(taken_in, Ok(true)) {
            let mut call = self.scripts.give_up.key(keys::RESTORING);
            // If this fails, the lease lapses.
            let _: Result<()> = self.redis.run(call.arg(&lease)).await;
        }
        taken_in
    }

    async fn take_in(&self, lease: &str, run: &str) -> Result<bool> {
        let logged = self.stream.read().await?;
        let restored = self.restore(&logged).await?;
        if restored > 0 {
            info!(jobs = restored, "the store had forgotten jobs: they are restored");
        }
        let mut call = self.scripts.taken_in.key(keys::JOURNAL);
        self.redis.run(call.key(keys::RESTORING).arg(lease).arg(run)).await
    }

    /// Writes entries to the stream that it lacks, or soon will: RabbitMQ may have been emptied, and the stream drops
    /// old entries. The sweeper calls this periodically.
    pub(crate) async fn complete(&self) -> Result<()> {
        let mut completed = self.completed.lock().await;
        let is_due = completed.is_none_or(|last| last.elapsed() >= COMPARE_INTERVAL);
        if (!is_due && self.stream.is_complete().await) || self.stream.is_missing().await? {
            return Ok(());
        }
        self.catch_up().await?;
        let before = self.look().await?;
        let witness = self.stream.watch().await?;
        let missing = self.missing_from(&self.stream.read().await?, UnixMs::now()).await?;
        let after = self.look().await?;
        if after.is_behind || after.taken != before.taken {
            // A job that was not there need not be over: it may have been forgotten just then.
            return Err(Error::new(ErrorKind::Unavailable, "redis was emptied or restarted just now"));
        }
        if !missing.is_empty() {
            info!(
                records = missing.len(),
                "what the stream journal lacked of jobs and spiders is written there"
            );
        }
        self.stream.complete(witness, missing).await?;
        *completed = Some(Instant::now());
        Ok(())
    }
}

impl RedisRecords {
    /// Writes missing entries to the journal. If RabbitMQ is unavailable, the next call tries again.
    pub(crate) async fn complete_journal(&self) -> Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        match journal.complete().await {
            Err(error) if error.is_temporary() => debug!(%error, "the stream journal is looked at later"),
            completed => completed?,
        }
        Ok(())
    }
}

/// The position of a store relative to its journal.
struct Standing {
    run: String,
    /// The process and the server run that last applied the journal.
    taken: String,
    is_behind: bool,
}

/// A journal, if a store has one.
#[derive(Clone, Default)]
pub(crate) struct Journaled(Option<Arc<RedisJournal>>);

impl Journaled {
    pub(crate) fn by(journal: Arc<RedisJournal>) -> Self {
        Self(Some(journal))
    }

    /// Whether there is one.
    pub(crate) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// Adds a record.
    pub(crate) async fn append(&self, record: impl FnOnce() -> Record + Send) -> Result<()> {
        match &self.0 {
            Some(journal) => journal.append([record()]).await,
            None => Ok(()),
        }
    }

    /// Applies the journal to the store, if the store is behind.
    pub(crate) async fn catch_up(&self) -> Result<()> {
        match &self.0 {
            Some(journal) => journal.catch_up().await,
            None => Ok(()),
        }
    }

    /// Runs a script that refuses a store that is behind, after catching up if necessary.
    pub(crate) async fn run<T: redis::FromRedisValue>(
        &self,
        redis: &Link,
        call: &ScriptInvocation<'_>,
    ) -> Result<T> {
        loop {
            let reply: std::result::Result<T, RedisError> = call.invoke_async(&mut redis.clone()).await;
            match (reply, &self.0) {
                (Err(error), Some(journal)) if has_code(&error, "BEHIND") => journal.catch_up().await?,
                (reply, _) => return reply.map_err(failed),
            }
        }
    }
}

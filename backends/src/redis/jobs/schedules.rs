//! The state of cron schedules on Redis: the hash `schedules`, spider -> the instant up to which it is done, in
//! ms, or `paused`.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use trawl_common::names::SpiderRef;
use trawl_common::ports::{Error, ErrorKind, Result, ScheduleState, Schedules};
use trawl_common::time::UnixMs;

use crate::journal::Record;
use crate::left_out::LeftOut;
use crate::redis::journal::{Journaled, RedisJournal};
use crate::redis::recovery::corrupt::shown;
use crate::redis::scripts::ScheduleScripts;
use crate::redis::{Link, keys};

/// The value for a paused schedule.
const PAUSED: &[u8] = b"paused";

/// The schedules of a fleet.
pub struct RedisSchedules {
    redis: Link,
    scripts: ScheduleScripts,
    left_out: LeftOut,
    journal: Journaled,
}

impl RedisSchedules {
    /// Creates the schedules on this connection.
    pub fn new(redis: Link) -> Self {
        let (left_out, journal) = Default::default();
        Self { redis, scripts: ScheduleScripts::new(), left_out, journal }
    }

    /// Also writes every change to the journal.
    #[must_use]
    pub(crate) fn with_journal(self, journal: Arc<RedisJournal>) -> Self {
        Self { journal: Journaled::by(journal), ..self }
    }
}

#[async_trait]
impl Schedules for RedisSchedules {
    async fn list(&self) -> Result<BTreeMap<SpiderRef, ScheduleState>> {
        self.journal.catch_up().await?;
        let all: Vec<(Vec<u8>, Vec<u8>)> =
            self.redis.query(redis::cmd("HGETALL").arg(keys::SCHEDULES)).await?;
        let mut states = BTreeMap::new();
        for (spider, state) in all {
            states.extend(self.left_out.unless_corrupt(read(&spider, &state))?);
        }
        Ok(states)
    }

    async fn note(&self, spider: &SpiderRef, until: UnixMs) -> Result<()> {
        let mut call = self.scripts.note.key(keys::SCHEDULES);
        if self.redis.run(call.arg(spider.to_string()).arg(until.0)).await? {
            self.journal.append(|| Record::schedule(spider, ScheduleState::Done(until))).await?;
        }
        Ok(())
    }

    async fn pause(&self, spider: &SpiderRef) -> Result<()> {
        self.journal.catch_up().await?;
        let () = self
            .redis
            .query(redis::cmd("HSET").arg(keys::SCHEDULES).arg(spider.to_string()).arg(PAUSED))
            .await?;
        self.journal.append(|| Record::schedule(spider, ScheduleState::Paused)).await
    }

    async fn resume(&self, spider: &SpiderRef, now: UnixMs) -> Result<()> {
        self.journal.catch_up().await?;
        let mut call = self.scripts.resume.key(keys::SCHEDULES);
        let until: Option<u64> = self.redis.run(call.arg(spider.to_string()).arg(now.0)).await?;
        match until {
            Some(until) => {
                self.journal.append(|| Record::schedule(spider, ScheduleState::Done(UnixMs(until)))).await
            }
            None => Ok(()),
        }
    }
}

/// Returns a state in stored form.
pub(crate) fn stored(state: ScheduleState) -> String {
    match state {
        ScheduleState::Done(until) => until.0.to_string(),
        ScheduleState::Paused => String::from_utf8_lossy(PAUSED).into_owned(),
    }
}

fn read(spider: &[u8], state: &[u8]) -> Result<(SpiderRef, ScheduleState)> {
    let unreadable = || {
        let (key, spider, state) = (keys::SCHEDULES, shown(spider), shown(state));
        let message = format!(
            "redis: the field {spider} of {key} holds `{state}`, which trawl does not write: set it right"
        );
        Error::new(ErrorKind::Corrupt, message)
    };
    let name = str::from_utf8(spider).ok().and_then(|text| text.parse().ok()).ok_or_else(unreadable)?;
    if state == PAUSED {
        return Ok((name, ScheduleState::Paused));
    }
    let until = str::from_utf8(state).ok().and_then(|text| text.parse().ok()).ok_or_else(unreadable)?;
    Ok((name, ScheduleState::Done(UnixMs(until))))
}

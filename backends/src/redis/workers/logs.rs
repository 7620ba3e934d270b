//! The fleet's log on Redis: one capped stream, so that its entries have one order, and one position is enough for
//! a reader.
//!
//! It is one key, so a cluster holds it in one slot. A server without free memory refuses entries, as it refuses
//! everything that only adds.

use std::collections::HashMap;

use async_trait::async_trait;
use redis::{Script, cmd};
use trawl_common::logs::LogEntry;
use trawl_common::ports::{Error, ErrorKind, LogLine, LogPart, LogPlace, Logs, Result};
use trawl_common::settings::Log;

use crate::left_out::LeftOut;
use crate::redis::{Link, keys};

/// Maximum number of entries, and approximate maximum size in bytes, that one call appends.
const MAX_ENTRIES: usize = 256;
const MAX_ENTRIES_BYTES: usize = 1024 * 1024;

/// An entry of a stream: its id, and its fields.
type Stored = (String, HashMap<Vec<u8>, Vec<u8>>);

/// The log of a fleet, or another list of such entries.
pub struct RedisLogs {
    redis: Link,
    key: &'static str,
    keep: usize,
    keep_bytes: u64,
    append: Script,
    left_out: LeftOut,
}

impl RedisLogs {
    /// Creates the log on this connection, with the capacity in `settings`.
    pub fn new(redis: Link, settings: &Log) -> Self {
        Self::at(keys::LOGS, redis, settings)
    }

    /// Creates the list of ended tasks, with the same capacity.
    pub fn of_ended_tasks(redis: Link, settings: &Log) -> Self {
        Self::at(keys::ENDED_TASKS, redis, settings)
    }

    fn at(key: &'static str, redis: Link, settings: &Log) -> Self {
        let append = Script::new(concat!("#!lua\n", include_str!("log.lua")));
        let (keep, keep_bytes) = (settings.keep, settings.keep_bytes.as_u64());
        Self { redis, key, keep, keep_bytes, append, left_out: LeftOut::default() }
    }

    async fn add(&self, entries: &[String]) -> Result<()> {
        let mut call = self.append.key(self.key);
        call.arg(self.keep).arg(self.keep_bytes);
        entries.iter().for_each(|entry| {
            call.arg(entry);
        });
        self.redis.run(&call).await
    }

    /// Parses entries as read; one more than `most` was asked for.
    fn part(&self, mut read: Vec<Stored>, most: usize, from: LogPlace) -> Result<LogPart> {
        let has_more = read.len() > most;
        read.truncate(most);
        let (mut lines, mut next) = (Vec::with_capacity(read.len()), from);
        for stored in read {
            next = place(&stored)?;
            lines.extend(
                self.left_out
                    .unless_corrupt(self.entry(&stored))?
                    .map(|entry| LogLine { place: next, entry }),
            );
        }
        Ok(LogPart { lines, next, has_more })
    }

    /// Returns the position of the last entry, or the beginning.
    async fn end(&self) -> Result<LogPlace> {
        let last = cmd("XREVRANGE").arg(self.key).arg("+").arg("-").arg("COUNT").arg(1).to_owned();
        let last: Vec<Stored> = self.redis.query(&last).await?;
        last.first().map_or(Ok(LogPlace::BEGIN), place)
    }

    async fn read_after(&self, after: LogPlace, most: usize) -> Result<LogPart> {
        let from = format!("({after}");
        let read = cmd("XRANGE").arg(self.key).arg(from).arg("+").arg("COUNT").arg(most + 1).to_owned();
        self.part(self.redis.query(&read).await?, most, after)
    }

    fn entry(&self, (id, fields): &Stored) -> Result<LogEntry> {
        let entry = fields.get(b"entry".as_slice()).and_then(|text| serde_json::from_slice(text).ok());
        entry.ok_or_else(|| {
            let message = format!("redis: {id} in {} is not what trawl writes: remove it (XDEL)", self.key);
            Error::new(ErrorKind::Corrupt, message)
        })
    }
}

#[async_trait]
impl Logs for RedisLogs {
    async fn append(&self, entries: &[LogEntry]) -> Result<()> {
        if self.keep == 0 {
            return Ok(());
        }
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for entry in entries {
            let text = serde_json::to_string(entry).map_err(|error| Error::new(ErrorKind::Refused, error))?;
            if batch.len() == MAX_ENTRIES || bytes + text.len() > MAX_ENTRIES_BYTES && !batch.is_empty() {
                self.add(&std::mem::take(&mut batch)).await?;
                bytes = 0;
            }
            bytes += text.len();
            batch.push(text);
        }
        if batch.is_empty() { Ok(()) } else { self.add(&batch).await }
    }

    async fn before(&self, before: LogPlace, most: usize) -> Result<LogPart> {
        // There is nothing before the first id, and Redis refuses that query.
        if before == LogPlace::BEGIN {
            return Ok(LogPart { lines: Vec::new(), next: before, has_more: false });
        }
        let from = if before == LogPlace::END { "+".to_owned() } else { format!("({before}") };
        let read = cmd("XREVRANGE").arg(self.key).arg(from).arg("-").arg("COUNT").arg(most + 1).to_owned();
        self.part(self.redis.query(&read).await?, most, before)
    }

    async fn after(&self, after: LogPlace, most: usize) -> Result<LogPart> {
        // There is also nothing after the last one.
        if after != LogPlace::END {
            let part = self.read_after(after, most).await?;
            if part.next != after {
                return Ok(part);
            }
        }
        match self.end().await? {
            end if end < after => self.read_after(LogPlace::BEGIN, most).await,
            // Entries that came in between are read next.
            _ => Ok(LogPart { lines: Vec::new(), next: after, has_more: false }),
        }
    }
}

fn place((id, _): &Stored) -> Result<LogPlace> {
    let unreadable = |_| Error::new(ErrorKind::Corrupt, format_args!("redis: {id} is no id of a stream"));
    id.parse().map_err(unreadable)
}

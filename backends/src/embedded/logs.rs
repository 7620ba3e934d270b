//! The log in the state file: one row per entry, only the last ones.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};
use trawl_common::logs::LogEntry;
use trawl_common::ports::{Error, ErrorKind, LogLine, LogPart, LogPlace, Logs, Result};
use trawl_common::settings::Log;

use crate::embedded::store::Store;
use crate::embedded::store::error::{self, Fault, unless_corrupt};
use crate::embedded::store::fields::Fields;

/// The capacity of the log.
#[derive(Clone, Copy)]
pub(super) struct Keep {
    entries: i64,
    bytes: i64,
}

impl Keep {
    pub(super) fn new(settings: &Log) -> Self {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        Self { entries: number(settings.keep as u64), bytes: number(settings.keep_bytes.as_u64()) }
    }
}

/// The log of one state file.
pub(super) struct EmbeddedLogs {
    pub(super) store: Arc<Store>,
    pub(super) keep: Keep,
}

#[async_trait]
impl Logs for EmbeddedLogs {
    async fn append(&self, entries: &[LogEntry]) -> Result<()> {
        let keep = self.keep;
        if keep.entries == 0 || entries.is_empty() {
            return Ok(());
        }
        let texts = entries.iter().map(serde_json::to_string).collect::<std::result::Result<Vec<_>, _>>();
        let texts = texts.map_err(|error| Error::new(ErrorKind::Refused, error))?;
        self.store.call(move |db, _| append(db, &texts, keep)).await
    }

    async fn before(&self, before: LogPlace, most: usize) -> Result<LogPart> {
        const READ: &str = "SELECT number, entry FROM logs WHERE number < ?1 ORDER BY number DESC LIMIT ?2";
        self.store.call(move |db, _| part(db, READ, before, most)).await
    }

    async fn after(&self, after: LogPlace, most: usize) -> Result<LogPart> {
        const READ: &str = "SELECT number, entry FROM logs WHERE number > ?1 ORDER BY number LIMIT ?2";
        let read = move |db: &Connection| {
            let end: Option<i64> =
                db.prepare_cached("SELECT max(number) FROM logs")?.query_row([], |row| row.get(0))?;
            let is_anew = end.unwrap_or_default() < number(after);
            part(db, READ, if is_anew { LogPlace::BEGIN } else { after }, most)
        };
        self.store.call(move |db, _| read(db)).await
    }
}

/// Each row has the sum of the bytes of all entries before it, so that the size of the table is the difference of
/// two.
fn append(db: &Connection, texts: &[String], keep: Keep) -> error::Result<()> {
    let last = "SELECT sum + octet_length(entry) FROM logs ORDER BY number DESC LIMIT 1";
    let mut sum: i64 = db.prepare_cached(last)?.query_row([], |row| row.get(0)).optional()?.unwrap_or(0);
    let mut insert = db.prepare_cached("INSERT INTO logs (sum, entry) VALUES (?1, ?2)")?;
    for text in texts {
        insert.execute(params![sum, text])?;
        sum += text.len() as i64;
    }
    let end = db.last_insert_rowid();
    db.prepare_cached("DELETE FROM logs WHERE number <= ?1")?.execute([end - keep.entries])?;
    let mut oldest = db.prepare_cached("SELECT number, sum FROM logs ORDER BY number LIMIT 1")?;
    let mut delete = db.prepare_cached("DELETE FROM logs WHERE number = ?1")?;
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    while let Some((number, before)) = oldest.query_row([], read).optional()?
        && sum - before > keep.bytes
    {
        delete.execute([number])?;
    }
    Ok(())
}

fn part(db: &Connection, sql: &str, from: LogPlace, most: usize) -> error::Result<LogPart> {
    let mut select = db.prepare_cached(sql)?;
    let mut rows = select.query(params![number(from), most as i64 + 1])?;
    let mut part = LogPart { lines: Vec::new(), next: from, has_more: false };
    let mut count = 0;
    while let Some(row) = rows.next()? {
        if count == most {
            part.has_more = true;
            break;
        }
        count += 1;
        part.next = LogPlace(Fields::new(row, "log", "number").number("number")?, 0);
        let place = part.next;
        part.lines.extend(unless_corrupt(entry(row))?.map(|entry| LogLine { place, entry }));
    }
    Ok(part)
}

fn entry(row: &Row<'_>) -> error::Result<LogEntry> {
    let text = row.get_ref("entry")?.as_str().ok();
    let entry = text.and_then(|text| serde_json::from_str(text).ok());
    entry.ok_or_else(|| -> Fault { Fields::new(row, "log", "number").unreadable("entry") })
}

/// Returns the number of a position, with the end capped at SQLite's maximum.
fn number(place: LogPlace) -> i64 {
    i64::try_from(place.0).unwrap_or(i64::MAX)
}

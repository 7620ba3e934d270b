//! The log in the state file, and the list of ended tasks: one row per entry, only the last ones.

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

/// The log of one state file, or another table of such entries.
pub(super) struct EmbeddedLogs {
    pub(super) store: Arc<Store>,
    pub(super) table: &'static str,
    pub(super) keep: Keep,
}

#[async_trait]
impl Logs for EmbeddedLogs {
    async fn append(&self, entries: &[LogEntry]) -> Result<()> {
        let (keep, table) = (self.keep, self.table);
        if keep.entries == 0 || entries.is_empty() {
            return Ok(());
        }
        let texts = entries.iter().map(serde_json::to_string).collect::<std::result::Result<Vec<_>, _>>();
        let texts = texts.map_err(|error| Error::new(ErrorKind::Refused, error))?;
        self.store.call(move |db, _| append(db, table, &texts, keep)).await
    }

    async fn before(&self, before: LogPlace, most: usize) -> Result<LogPart> {
        let table = self.table;
        let read =
            format!("SELECT number, entry FROM {table} WHERE number < ?1 ORDER BY number DESC LIMIT ?2");
        self.store.call(move |db, _| part(db, &read, before, most)).await
    }

    async fn after(&self, after: LogPlace, most: usize) -> Result<LogPart> {
        let table = self.table;
        let read = move |db: &Connection| {
            let sql = format!("SELECT max(number) FROM {table}");
            let end: Option<i64> = db.prepare_cached(&sql)?.query_row([], |row| row.get(0))?;
            let is_anew = end.unwrap_or_default() < number(after);
            let read =
                format!("SELECT number, entry FROM {table} WHERE number > ?1 ORDER BY number LIMIT ?2");
            part(db, &read, if is_anew { LogPlace::BEGIN } else { after }, most)
        };
        self.store.call(move |db, _| read(db)).await
    }
}

/// Each row has the sum of the bytes of all entries before it, so that the size of the table is the difference of
/// two.
fn append(db: &Connection, table: &str, texts: &[String], keep: Keep) -> error::Result<()> {
    let last = format!("SELECT sum + octet_length(entry) FROM {table} ORDER BY number DESC LIMIT 1");
    let mut sum: i64 = db.prepare_cached(&last)?.query_row([], |row| row.get(0)).optional()?.unwrap_or(0);
    let mut insert = db.prepare_cached(&format!("INSERT INTO {table} (sum, entry) VALUES (?1, ?2)"))?;
    for text in texts {
        insert.execute(params![sum, text])?;
        sum += text.len() as i64;
    }
    let end = db.last_insert_rowid();
    db.prepare_cached(&format!("DELETE FROM {table} WHERE number <= ?1"))?.execute([end - keep.entries])?;
    let mut oldest =
        db.prepare_cached(&format!("SELECT number, sum FROM {table} ORDER BY number LIMIT 1"))?;
    let mut delete = db.prepare_cached(&format!("DELETE FROM {table} WHERE number = ?1"))?;
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

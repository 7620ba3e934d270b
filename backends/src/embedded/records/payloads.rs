//! The tables `tasks` and `requests`: the payload of each task and each request, beside its record. One without a
//! record is a dead letter, and can be replayed.

use rusqlite::{Connection, OptionalExtension, params};
use trawl_common::frontier::{Key, Work};

use crate::embedded::store::error::{Fault, Result};

/// Returns the table with the payload of `key`; `None` for a URL, which has none.
fn table(key: &Key) -> Option<&'static str> {
    match key {
        Key::Url(_) => None,
        Key::Request(_) => Some("requests"),
        Key::Task(_) => Some("tasks"),
    }
}

/// Stores the payload of a task or a request of a crawl, with its record in row `record`.
pub(crate) fn insert(db: &Connection, crawl: i64, work: &Work, record: i64) -> Result<()> {
    match work {
        Work::Url(_) => {}
        Work::Request(request) => {
            db.prepare_cached(
                "INSERT OR REPLACE INTO requests (crawl, key, record, payload) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![crawl, request.key.as_str(), record, request.payload()])?;
        }
        Work::Task(task) => {
            db.prepare_cached(
                "INSERT OR REPLACE INTO tasks (crawl, key, record, priority, payload) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![crawl, task.key.as_str(), record, task.new.priority.get(), task.payload()])?;
        }
    }
    Ok(())
}

/// Returns the payload of the request under this key, while it has a record or is a dead letter.
pub(crate) fn of_request(db: &Connection, crawl: i64, key: &str) -> Result<Option<String>> {
    payload(db, crawl, "requests", key)
}

fn payload(db: &Connection, crawl: i64, table: &str, key: &str) -> Result<Option<String>> {
    let mut find =
        db.prepare_cached(&format!("SELECT payload FROM {table} WHERE crawl = ?1 AND key = ?2"))?;
    Ok(find.query_row(params![crawl, key], |row| row.get(0)).optional()?)
}

/// Returns the work of a record or a dead letter of a crawl; `None` for a task or a request without a payload.
pub(crate) fn find(db: &Connection, crawl: i64, key: &Key) -> Result<Option<Work>> {
    let payload = match table(key) {
        None => String::new(),
        Some(table) => match payload(db, crawl, table, key.as_str())? {
            None => return Ok(None),
            Some(payload) => payload,
        },
    };
    let unreadable = || Fault::corrupt(format_args!("what is kept of {key} cannot be read"));
    Work::stored(key.clone(), &payload).map(Some).ok_or_else(unreadable)
}

/// Keeps the payload of a task or a request that has no record any more, because it is a dead letter.
pub(crate) fn keep(db: &Connection, crawl: i64, key: &Key) -> Result<()> {
    change(db, crawl, key, |table| format!("UPDATE {table} SET record = NULL WHERE crawl = ?1 AND key = ?2"))
}

/// Removes the payload of a task or a request that has ended.
pub(crate) fn remove(db: &Connection, crawl: i64, key: &Key) -> Result<()> {
    change(db, crawl, key, |table| format!("DELETE FROM {table} WHERE crawl = ?1 AND key = ?2"))
}

/// Removes the payload of a dead letter that leaves its list, unless it has a record again.
pub(crate) fn remove_dead(db: &Connection, crawl: i64, key: &Key) -> Result<()> {
    change(db, crawl, key, |table| {
        format!("DELETE FROM {table} WHERE crawl = ?1 AND key = ?2 AND record IS NULL")
    })
}

fn change(db: &Connection, crawl: i64, key: &Key, sql: impl Fn(&str) -> String) -> Result<()> {
    if let Some(table) = table(key) {
        db.prepare_cached(&sql(table))?.execute(params![crawl, key.as_str()])?;
    }
    Ok(())
}

/// Removes all payloads of a crawl except those of its dead letters.
pub(crate) fn remove_all(db: &Connection, crawl: i64) -> Result<()> {
    for table in ["tasks", "requests"] {
        let sql = format!("DELETE FROM {table} WHERE crawl = ?1 AND record IS NOT NULL");
        db.prepare_cached(&sql)?.execute([crawl])?;
    }
    Ok(())
}

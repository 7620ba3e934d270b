//! The tables `tasks` and `requests`: what each task and each request says, beside its record. One without a record is a dead letter,
//! and can be replayed.

use rusqlite::{Connection, OptionalExtension, params};
use trawl_common::frontier::{Key, Work};

use super::error::{Fault, Result};

/// The table of what `key` says; `None` of a URL, which says all by itself.
fn table(key: &Key) -> Option<&'static str> {
    match key {
        Key::Url(_) => None,
        Key::Request(_) => Some("requests"),
        Key::Task(_) => Some("tasks"),
    }
}

/// Keeps what a task or a request of a crawl says, whose record is in row `record`.
pub(super) fn insert(db: &Connection, crawl: i64, work: &Work, record: i64) -> Result<()> {
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

/// What is kept of the request under this key, as long as it has a record or is a dead letter.
pub(super) fn of_request(db: &Connection, crawl: i64, key: &str) -> Result<Option<String>> {
    payload(db, crawl, "requests", key)
}

fn payload(db: &Connection, crawl: i64, table: &str, key: &str) -> Result<Option<String>> {
    let mut find =
        db.prepare_cached(&format!("SELECT payload FROM {table} WHERE crawl = ?1 AND key = ?2"))?;
    Ok(find.query_row(params![crawl, key], |row| row.get(0)).optional()?)
}

/// What a record of a crawl stands for, or a dead letter; `None` of a task or a request of which nothing is kept.
pub(super) fn find(db: &Connection, crawl: i64, key: &Key) -> Result<Option<Work>> {
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

/// Keeps what a task or a request says that has no record any more: it is a dead letter.
pub(super) fn keep(db: &Connection, crawl: i64, key: &Key) -> Result<()> {
    change(db, crawl, key, |table| format!("UPDATE {table} SET record = NULL WHERE crawl = ?1 AND key = ?2"))
}

/// Forgets what a task or a request says that has ended.
pub(super) fn remove(db: &Connection, crawl: i64, key: &Key) -> Result<()> {
    change(db, crawl, key, |table| format!("DELETE FROM {table} WHERE crawl = ?1 AND key = ?2"))
}

/// Forgets what a dead letter says that leaves its list; one that has a record again stays.
pub(super) fn remove_dead(db: &Connection, crawl: i64, key: &Key) -> Result<()> {
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

/// Forgets all of a crawl but its dead letters.
pub(super) fn remove_all(db: &Connection, crawl: i64) -> Result<()> {
    for table in ["tasks", "requests"] {
        let sql = format!("DELETE FROM {table} WHERE crawl = ?1 AND record IS NOT NULL");
        db.prepare_cached(&sql)?.execute([crawl])?;
    }
    Ok(())
}

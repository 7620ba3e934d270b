//! The table `tasks`: what each task says, beside its record. One without a record is a dead letter, and can be replayed.

use rusqlite::{Connection, OptionalExtension, params};
use trawl_common::frontier::{Task, TaskKey};

use super::error::{Fault, Result};

/// Keeps what a task of a crawl says, whose record is in row `record`.
pub(super) fn insert(db: &Connection, crawl: i64, task: &Task, record: i64) -> Result<()> {
    db.prepare_cached(
        "INSERT OR REPLACE INTO tasks (crawl, key, record, priority, payload) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![crawl, task.key.as_str(), record, task.new.priority.get(), task.payload()])?;
    Ok(())
}

/// What a task of a crawl says, as long as it has a record or is a dead letter.
pub(super) fn find(db: &Connection, crawl: i64, key: &TaskKey) -> Result<Option<Task>> {
    let mut find = db.prepare_cached("SELECT payload FROM tasks WHERE crawl = ?1 AND key = ?2")?;
    let payload: Option<String> =
        find.query_row(params![crawl, key.as_str()], |row| row.get(0)).optional()?;
    let Some(payload) = payload else { return Ok(None) };
    let unreadable = || Fault::corrupt(format_args!("what is kept of {key} is no task"));
    Task::stored(key.clone(), &payload).map(Some).ok_or_else(unreadable)
}

/// Keeps what a task says that has no record any more: it is a dead letter.
pub(super) fn keep(db: &Connection, crawl: i64, key: &TaskKey) -> Result<()> {
    db.prepare_cached("UPDATE tasks SET record = NULL WHERE crawl = ?1 AND key = ?2")?
        .execute(params![crawl, key.as_str()])?;
    Ok(())
}

/// Forgets what a task says that has ended.
pub(super) fn remove(db: &Connection, crawl: i64, key: &TaskKey) -> Result<()> {
    db.prepare_cached("DELETE FROM tasks WHERE crawl = ?1 AND key = ?2")?
        .execute(params![crawl, key.as_str()])?;
    Ok(())
}

/// Forgets what a dead letter says that leaves its list; one that has a record again stays.
pub(super) fn remove_dead(db: &Connection, crawl: i64, key: &TaskKey) -> Result<()> {
    db.prepare_cached("DELETE FROM tasks WHERE crawl = ?1 AND key = ?2 AND record IS NULL")?
        .execute(params![crawl, key.as_str()])?;
    Ok(())
}

/// Forgets all of a crawl but its dead letters.
pub(super) fn remove_all(db: &Connection, crawl: i64) -> Result<()> {
    db.prepare_cached("DELETE FROM tasks WHERE crawl = ?1 AND record IS NOT NULL")?.execute([crawl])?;
    Ok(())
}

//! The table `tasks`: what each task says, beside its record. One without a record is a dead letter, and can be replayed.

use rusqlite::{Connection, OptionalExtension, params};
use trawl_common::frontier::{State, Task, TaskKey};
use trawl_common::ports::{PendingTask, TaskPage};
use trawl_common::time::UnixMs;

use super::error::{Fault, Result};
use super::holdings::Holdings;

/// So many tasks make a part.
const PART: usize = 500;

/// A part of the tasks of a crawl that have no final state: those in the rows after `cursor`.
pub(super) fn page(
    db: &Connection,
    holdings: &Holdings,
    crawl: i64,
    cursor: u64,
    now: UnixMs,
) -> Result<TaskPage> {
    let mut select = db.prepare_cached(
        "SELECT id, url, due, attempts FROM records WHERE crawl = ?1 AND lane = 'task' AND id > ?2 ORDER BY id LIMIT ?3",
    )?;
    let mut rows = select.query(params![crawl, cursor.cast_signed(), PART as i64])?;
    let (mut page, mut last, mut looked) = (TaskPage::default(), 0, 0);
    while let Some(row) = rows.next()? {
        looked += 1;
        last = row.get::<_, i64>(0)?;
        // What is no task is a record that cannot be read.
        let Ok(key) = row.get_ref(1)?.as_str().unwrap_or_default().parse::<TaskKey>() else { continue };
        let due: Option<i64> = row.get(2)?;
        let due = due.map(|due| UnixMs(due.max(0).cast_unsigned())).filter(|due| *due > now);
        let waits = due
            .map_or(State::Queued { since: UnixMs(0) }, |until| State::Parked { until, unconfirmed: None });
        let state = holdings.state(last, now).unwrap_or(waits);
        page.tasks.push(PendingTask { key, state, attempts: row.get(3)? });
    }
    page.next = (looked == PART).then_some(last.cast_unsigned());
    Ok(page)
}

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

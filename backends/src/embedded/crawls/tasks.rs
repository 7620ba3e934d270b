//! The tasks of a crawl that have no final state, for listing.

use rusqlite::{Connection, params};
use trawl_common::frontier::{State, TaskKey};
use trawl_common::ports::{PendingTask, TaskPage};
use trawl_common::time::UnixMs;

use crate::embedded::records::holdings::Holdings;
use crate::embedded::store::error::Result;

/// Maximum number of tasks of a part.
const PART_SIZE: usize = 500;

/// Returns whether a crawl has a task, pending or failed.
pub(crate) fn exist(db: &Connection, crawl: i64) -> Result<bool> {
    let mut find = db.prepare_cached("SELECT EXISTS (SELECT 1 FROM tasks WHERE crawl = ?1)")?;
    Ok(find.query_row(params![crawl], |row| row.get(0))?)
}

/// Returns a part of the tasks of a crawl that have no final state: those in the rows after `cursor`.
pub(crate) fn page(
    db: &Connection,
    holdings: &Holdings,
    crawl: i64,
    cursor: u64,
    now: UnixMs,
) -> Result<TaskPage> {
    let mut select = db.prepare_cached(
        "SELECT id, url, due, attempts FROM records WHERE crawl = ?1 AND lane = 'task' AND id > ?2 ORDER BY id LIMIT ?3",
    )?;
    let mut rows = select.query(params![crawl, cursor.cast_signed(), PART_SIZE as i64])?;
    let (mut page, mut last, mut looked) = (TaskPage::default(), 0, 0);
    while let Some(row) = rows.next()? {
        looked += 1;
        last = row.get::<_, i64>(0)?;
        // A key that names no task belongs to a record that cannot be read.
        let Ok(key) = row.get_ref(1)?.as_str().unwrap_or_default().parse::<TaskKey>() else { continue };
        let due: Option<i64> = row.get(2)?;
        let due = due.map(|due| UnixMs(due.max(0).cast_unsigned())).filter(|due| *due > now);
        let waits = due.map_or(State::Queued { since: UnixMs(0) }, |until| State::Parked {
            until,
            unconfirmed: None,
            in_pause: false,
        });
        let state = holdings.state(last, now).unwrap_or(waits);
        page.tasks.push(PendingTask { key, state, attempts: row.get(3)? });
    }
    page.next = (looked == PART_SIZE).then_some(last.cast_unsigned());
    Ok(page)
}

//! The heartbeat of the process that works on the file, for those who look into the file meanwhile.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};
use trawl_common::ports::WorkerState;
use trawl_common::time::UnixMs;

use crate::embedded::store::error::Result;
use crate::embedded::store::fields::sql_ms;

/// Writes the heartbeat, or that the worker has ended.
pub(crate) fn write(db: &Connection, beat: Option<&WorkerState>) -> Result<()> {
    db.prepare_cached("DELETE FROM heartbeat")?.execute([])?;
    // It has no value that cannot be written as JSON; without it nothing is shown.
    if let Some(text) = beat.and_then(|beat| serde_json::to_string(beat).ok()) {
        let mut insert = db.prepare_cached("INSERT INTO heartbeat (at, worker) VALUES (?1, ?2)")?;
        insert.execute(params![sql_ms(UnixMs::now()), text])?;
    }
    Ok(())
}

/// Returns the last heartbeat, unless it is older than `ttl`.
pub(crate) fn read(db: &Connection, ttl: Duration) -> Result<Option<WorkerState>> {
    let mut select = db.prepare_cached("SELECT at, worker FROM heartbeat")?;
    let found = select.query_row([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?))).optional()?;
    let recent = found.filter(|(at, _): &(i64, _)| *at > sql_ms(UnixMs::now()) - ttl.as_millis() as i64);
    Ok(recent.and_then(|(_, text)| serde_json::from_str(&text).ok()))
}

//! The lanes of a state file: its rows, by the reason why they wait.

use rusqlite::{Connection, Row, params};
use trawl_common::ports::{LaneName, LaneState};
use trawl_common::time::UnixMs;

use crate::embedded::records::holdings::Holdings;
use crate::embedded::store::error::Result;
use crate::embedded::store::fields::sql_ms;

/// Returns the state of each lane, without the records that workers of this process hold. The time of admission is
/// not stored, so an age is known only for records with an instant of their own.
pub(crate) fn read(db: &Connection, holdings: &Holdings, now: UnixMs) -> Result<Vec<LaneState>> {
    let count =
        |sql: &str| -> Result<u64> { Ok(db.prepare_cached(sql)?.query_row([], |row| number(row, 0))?) };
    let (due, since) = due(db, now)?;
    let parked = count("SELECT count(*) FROM records WHERE due IS NOT NULL")?;
    let urgent = count("SELECT count(*) FROM records WHERE lane = 'priority' AND due IS NULL")?;
    // Read from the counters, as there may be millions of records.
    let records = count(
        "SELECT coalesce(sum(admitted - done - failed - skipped - expired - cancelled), 0) FROM crawls",
    )?;
    let (jobs, asked) = jobs(db)?;
    let held = holdings.rows();
    let of = |lane, rows: u64, since: Option<UnixMs>| {
        let held = LaneName::source_queue(lane).map_or(0, |source| held[source as usize]);
        let messages = rows.saturating_sub(held);
        let oldest = since.filter(|_| messages > 0).map(|since| now.since(since));
        LaneState { lane, messages, consumers: None, oldest }
    };
    Ok(vec![
        of(LaneName::Due, due, since),
        of(LaneName::Priority, urgent, None),
        of(LaneName::Bulk, records.saturating_sub(parked + urgent), None),
        of(LaneName::Wait, parked.saturating_sub(due), None),
        of(LaneName::Failed, count("SELECT count(*) FROM failed")?, None),
        of(LaneName::Jobs, jobs, asked),
    ])
}

/// Returns the number of parked records that are due, and the time since when the first is.
fn due(db: &Connection, now: UnixMs) -> Result<(u64, Option<UnixMs>)> {
    let mut due = db.prepare_cached("SELECT count(*), min(due) FROM records WHERE due <= ?1")?;
    Ok(due.query_row(params![sql_ms(now)], |row| Ok((number(row, 0)?, instant(row, 1)?)))?)
}

/// Returns the number of waiting jobs, and the time since when the first waits.
fn jobs(db: &Connection) -> Result<(u64, Option<UnixMs>)> {
    let mut jobs = db.prepare_cached("SELECT count(*), min(asked) FROM jobs WHERE status = 'pending'")?;
    Ok(jobs.query_row([], |row| Ok((number(row, 0)?, instant(row, 1)?)))?)
}

fn number(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(at)?.max(0).cast_unsigned())
}

fn instant(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<UnixMs>> {
    let stored: Option<i64> = row.get(at)?;
    Ok(stored.map(|ms| UnixMs(ms.max(0).cast_unsigned())))
}

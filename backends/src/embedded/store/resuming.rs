//! Taking over the state file of an earlier process.
//!
//! In between a clock may have been set back, or a bit may have flipped. Records that trawl cannot have written
//! so, and that would keep their crawl from ending, are removed and logged.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use tracing::error;
use trawl_common::frontier::retry::MAX_DELAY;
use trawl_common::ports::Error;
use trawl_common::time::UnixMs;

use crate::embedded::admission::sources;
use crate::embedded::crawls;
use crate::embedded::crawls::crawl_stats;
use crate::embedded::records::corrupt::quarantine;
use crate::embedded::records::{self, COLUMNS, FROM, Stored, Unreadable};
use crate::embedded::seen::Seen;
use crate::embedded::store::Memory;
use crate::embedded::store::error::{Result, unless_corrupt};
use crate::embedded::store::fields::{Fields, sql_ms, unreadable};

/// Maximum time that anything is parked, except for a slot of its host.
const MAX_PARKED: Duration = Duration::from_secs(MAX_DELAY.as_secs() + 60);

/// Prepares the state file for a new process:
///
/// 1. Moves instants back with the clock.
/// 2. Makes records that wait for a slot of their host ask again: the hosts' schedules know no slots reserved by
///    an earlier process, and the rate may be another.
/// 3. Notes that nobody has had the file open since.
/// 4. Notes that sources which an earlier process was reading are unread.
/// 5. Removes records that would never be handed out.
/// 6. Corrects the counters of each crawl by its records.
pub(crate) fn resume(db: &mut Connection, now: UnixMs) -> Result<()> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    take_over(&tx, now)?;
    Ok(tx.commit()?)
}

fn take_over(db: &Connection, now: UnixMs) -> Result<()> {
    go_back(db, now)?;
    db.execute(
        "UPDATE records SET due = min(due, ?1), slot = NULL, turn = NULL, looks = 0
         WHERE slot IS NOT NULL OR turn IS NOT NULL",
        [sql_ms(now)],
    )?;
    db.execute(
        "UPDATE crawls SET away = away + iif(touched BETWEEN 0 AND ?1, ?1 - touched, 0), touched = ?1 WHERE ended IS NULL",
        [sql_ms(now)],
    )?;
    // The feeder of a job is gone as well.
    db.execute("UPDATE jobs SET until = 0 WHERE until IS NOT NULL", [])?;
    sources::take_over(db)?;
    let mut memory = Memory::default();
    for record in never_given(db, now)? {
        take_away(db, &mut memory, record)?;
    }
    for record in unseen_tasks(db, &mut memory.seen)? {
        take_away(db, &mut memory, record)?;
    }
    count_again(db)
}

/// Moves instants back if the clock was set back since the file was last in use, so that parked records wait no
/// longer than planned.
fn go_back(db: &Connection, now: UnixMs) -> Result<()> {
    let mut last = db.prepare("SELECT coalesce(max(touched), 0) FROM crawls WHERE ended IS NULL")?;
    let last: i64 = last.query_row([], |row| row.get(0))?;
    let by = last.saturating_sub(sql_ms(now));
    if by > 0 {
        db.execute("UPDATE records SET due = max(0, due - ?1) WHERE due > ?1", [by])?;
    }
    Ok(())
}

/// Returns records of no unfinished crawl, in no row that is walked, parked for ever, or of tasks without a
/// payload.
fn never_given(db: &Connection, now: UnixMs) -> Result<Vec<Unreadable>> {
    let latest = sql_ms(now.plus(MAX_PARKED));
    let mut select = db.prepare(
        "SELECT r.id, r.crawl, CAST(r.url AS BLOB), r.due, CASE
             WHEN r.crawl NOT IN (SELECT key FROM crawls WHERE status NOT IN ('finished', 'cancelled')) THEN 'crawl'
             WHEN r.id <= 0 THEN 'id'
             WHEN r.due > ?1 THEN 'due'
             WHEN r.lane = 'task' AND NOT EXISTS (
                 SELECT 1 FROM tasks t WHERE t.crawl = r.crawl AND t.key = r.url AND t.record = r.id
             ) THEN 'payload'
         END AS field FROM records r WHERE field IS NOT NULL",
    )?;
    let mut rows = select.query([latest])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, crawl, due): (i64, i64, Option<i64>) = (row.get(0)?, row.get(1)?, row.get(3)?);
        let url = String::from_utf8_lossy(row.get_ref(2)?.as_bytes().unwrap_or_default()).into_owned();
        let field: String = row.get(4)?;
        let held = match &*field {
            "crawl" => crawl.to_string(),
            "id" => id.to_string(),
            "due" => due.unwrap_or_default().to_string(),
            _ => String::new(),
        };
        let error = unreadable("record", &url, &field, &held).into();
        found.push(Unreadable { id, crawl, url, error });
    }
    Ok(found)
}

/// Returns tasks that are not seen with their records' rows: if admitted again, such a task would have two
/// records. For URLs this is checked when they are claimed.
fn unseen_tasks(db: &Connection, seen: &mut Seen) -> Result<Vec<Unreadable>> {
    let mut select = db.prepare(&format!("{COLUMNS} {FROM} WHERE r.lane = 'task'"))?;
    let mut rows = select.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let Ok(stored) = Stored::read(row)? else { continue };
        let Some(crawl) = unless_corrupt(crawls::at(db, stored.crawl))? else { continue };
        found.extend(stored.if_seen(db, seen, &crawl.crawl)?.err());
    }
    Ok(found)
}

/// Removes a record. One of no unfinished crawl is counted for a crawl that lacks one; if there is none, it is
/// just deleted.
fn take_away(db: &Connection, memory: &mut Memory, record: Unreadable) -> Result<()> {
    let known =
        "SELECT EXISTS (SELECT 1 FROM crawls WHERE key = ?1 AND status NOT IN ('finished', 'cancelled'))";
    let crawl = match db.query_row(known, [record.crawl], |row| row.get(0))? {
        true => record.crawl,
        false => match lacking(db)? {
            Some(crawl) => crawl,
            None => {
                error!(url = record.url, error = %record.error, "a record of no crawl is dropped");
                return records::delete(db, record.id);
            }
        },
    };
    db.execute("UPDATE records SET crawl = ?2 WHERE id = ?1", [record.id, crawl])?;
    // A crawl that cannot be read itself is left alone with all its records.
    unless_corrupt(quarantine(db, memory, &Unreadable { crawl, ..record })).map(|_| ())
}

/// Returns an unfinished crawl with fewer records than its counters say.
fn lacking(db: &Connection) -> Result<Option<i64>> {
    let mut select = db.prepare(
        "SELECT key FROM crawls c WHERE status NOT IN ('finished', 'cancelled')
         AND admitted > done + failed + skipped + expired + cancelled
                        + (SELECT count(*) FROM records r WHERE r.crawl = c.key)",
    )?;
    Ok(select.query_row([], |row| row.get(0)).optional()?)
}

/// Sets the admitted counter of each unfinished crawl to the ended plus the remaining records. Otherwise it would
/// end too early, or never.
fn count_again(db: &Connection) -> Result<()> {
    let mut select = db.prepare(
        "SELECT c.*, (SELECT count(*) FROM records r WHERE r.crawl = c.key) AS records FROM crawls c
         WHERE status NOT IN ('finished', 'cancelled')",
    )?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let fields = Fields::new(row, "crawl", "id");
        let Some(counts) = unless_corrupt(crawl_stats::counts(&fields))? else { continue };
        let right = counts.ended().saturating_add(fields.number("records")?);
        if counts.admitted != right {
            let error = Error::from(fields.unreadable("admitted"));
            error!(%error, right, "the counter is set right");
            let right = i64::try_from(right).unwrap_or(i64::MAX);
            db.execute("UPDATE crawls SET admitted = ?2 WHERE key = ?1", [row.get("key")?, right])?;
        }
    }
    Ok(())
}

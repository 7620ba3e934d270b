//! The choice of the next record to hand out.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, Row, Rows};
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::time::UnixMs;

use crate::embedded::records::holdings::Holdings;
use crate::embedded::records::{self, COLUMNS, FROM, Stored, Unreadable};
use crate::embedded::store::error::Result;
use crate::embedded::store::fields::sql_ms;

/// The search for records that nobody holds.
///
/// A record that was never handed out is found by walking its lane once, by id; one that returns to its lane is
/// remembered by id. So nothing is searched twice, and memory holds only the returned ones.
#[derive(Default)]
pub(crate) struct Dispatch {
    again: BTreeSet<(Lane, i64)>,
    cursors: BTreeMap<Lane, i64>,
    /// The rows of crawls that cannot be read: none of their records is handed out.
    passed_over: BTreeSet<i64>,
    stirred: bool,
}

/// A record that may be handed out, or one that cannot be read and is in the way of the others.
pub(crate) type Found = std::result::Result<Stored, Unreadable>;

/// The condition on a record's crawl for the record to be handed out.
const GOING: &str = "c.paused IS NULL";

impl Dispatch {
    /// Marks a record to be checked again: its state decides whether it is handed out.
    pub(crate) fn offer(&mut self, id: i64, lane: Lane) {
        // Tasks are always found in the order of their priorities.
        if lane != Lane::Task {
            self.again.insert((lane, id));
        }
        self.stirred = true;
    }

    /// Notes that records have become available.
    pub(crate) fn stir(&mut self) {
        self.stirred = true;
    }

    /// Returns whether anything has become available since the last call.
    pub(crate) fn take_stirred(&mut self) -> bool {
        std::mem::take(&mut self.stirred)
    }

    /// Stops handing out records of the crawl in row `crawl`, until all lanes are walked again.
    pub(crate) fn pass_over(&mut self, crawl: i64) {
        self.passed_over.insert(crawl);
    }

    /// Walks all lanes from their start again, because records that were skipped there have become available.
    /// Returned records are found on the way, too.
    pub(crate) fn walk_again(&mut self) {
        self.again.clear();
        self.cursors.clear();
        self.passed_over.clear();
        self.stirred = true;
    }

    /// Returns the next records of a queue, at most `most`.
    pub(crate) fn next(
        &mut self,
        db: &Connection,
        holdings: &Holdings,
        source: SourceQueue,
        now: UnixMs,
        most: usize,
    ) -> Result<Vec<Found>> {
        match source {
            SourceQueue::Due => self.due(db, holdings, now, most),
            SourceQueue::Priority => self.next_in(db, holdings, Lane::Priority, most),
            // Lanes have no time to live here.
            SourceQueue::Expired => Ok(Vec::new()),
            SourceQueue::Bulk => self.next_in(db, holdings, Lane::Bulk, most),
            SourceQueue::Task => self.tasks(db, holdings, now, most),
        }
    }

    fn next_in(
        &mut self,
        db: &Connection,
        holdings: &Holdings,
        lane: Lane,
        most: usize,
    ) -> Result<Vec<Found>> {
        let mut found = self.returned(db, holdings, lane, most)?;
        self.walk(db, holdings, lane, most, &mut found)?;
        Ok(found)
    }

    /// Returns records that returned to `lane`. One that has been taken, parked or deleted since is skipped, as is
    /// one whose crawl is paused, which [`Dispatch::walk_again`] finds later.
    fn returned(
        &mut self,
        db: &Connection,
        holdings: &Holdings,
        lane: Lane,
        most: usize,
    ) -> Result<Vec<Found>> {
        let mut one =
            db.prepare_cached(&format!("{COLUMNS} {FROM} WHERE r.id = ?1 AND r.due IS NULL AND {GOING}"))?;
        let mut found = Vec::new();
        while found.len() < most
            && let Some(&(_, id)) = self.again.range((lane, i64::MIN)..=(lane, i64::MAX)).next()
        {
            self.again.remove(&(lane, id));
            let mut rows = one.query([id])?;
            if let Some(row) = rows.next()?
                && !holdings.is_held(id)
                && !self.passed_over.contains(&row.get(1)?)
            {
                found.push(Stored::read(row)?);
            }
        }
        Ok(found)
    }

    /// Returns records of `lane` that were never handed out, beyond those already `found`. The lane is written
    /// out, for the partial index.
    fn walk(
        &mut self,
        db: &Connection,
        holdings: &Holdings,
        lane: Lane,
        most: usize,
        found: &mut Vec<Found>,
    ) -> Result<()> {
        // Records in no valid lane are included, so that they are reported.
        let of_lane = match lane {
            Lane::Priority => "r.lane = 'priority'",
            Lane::Bulk => "r.lane NOT IN ('priority', 'task')",
            Lane::Task => "r.lane = 'task'",
        };
        let sql = format!(
            "{COLUMNS} {FROM} WHERE {of_lane} AND r.due IS NULL AND r.id > ?1 AND {GOING} ORDER BY r.id"
        );
        let mut next = db.prepare_cached(&sql)?;
        let returned: BTreeSet<i64> = found.iter().map(id_of).collect();
        let mut cursor = self.cursors.get(&lane).copied().unwrap_or_default();
        let mut rows = next.query([cursor])?;
        while found.len() < most {
            let Some(row) = rows.next()? else {
                cursor = records::newest(db)?;
                break;
            };
            cursor = row.get(0)?;
            if !returned.contains(&cursor)
                && !holdings.is_held(cursor)
                && !self.passed_over.contains(&row.get(1)?)
            {
                found.push(Stored::read(row)?);
            }
        }
        self.cursors.insert(lane, cursor);
        Ok(())
    }

    /// Returns parked records that are due. Held ones keep their due time until they start, hence the filter.
    fn due(&self, db: &Connection, holdings: &Holdings, now: UnixMs, most: usize) -> Result<Vec<Found>> {
        let mut due = db.prepare_cached(&format!(
            "{COLUMNS} {FROM} WHERE r.due <= ?1 AND r.lane <> 'task' AND {GOING} ORDER BY r.due"
        ))?;
        self.available(due.query([sql_ms(now)])?, holdings, most, Stored::read)
    }

    /// Returns tasks that may be done now, the highest priority first, and within a priority in the order in which
    /// they were admitted. Held and parked tasks are skipped; there are only as many as are in progress.
    fn tasks(&self, db: &Connection, holdings: &Holdings, now: UnixMs, most: usize) -> Result<Vec<Found>> {
        let mut tasks = db.prepare_cached(&format!(
            "{COLUMNS}, t.payload FROM tasks t CROSS JOIN records r CROSS JOIN crawls c
             WHERE t.record IS NOT NULL AND r.id = t.record AND t.crawl = r.crawl AND t.key = r.url AND c.key = r.crawl
               AND (r.due IS NULL OR r.due <= ?1) AND {GOING}
             ORDER BY t.priority DESC, t.record"
        ))?;
        let read =
            |row: &Row<'_>| Ok(Stored::read(row)?.map(|stored| stored.with_payload(row.get("payload").ok())));
        self.available(tasks.query([sql_ms(now)])?, holdings, most, read)
    }

    /// Reads rows until `most` of them are neither held nor of a crawl that is passed over.
    fn available(
        &self,
        mut rows: Rows<'_>,
        holdings: &Holdings,
        most: usize,
        read: impl Fn(&Row<'_>) -> Result<Found>,
    ) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        while found.len() < most
            && let Some(row) = rows.next()?
        {
            if !holdings.is_held(row.get(0)?) && !self.passed_over.contains(&row.get(1)?) {
                found.push(read(row)?);
            }
        }
        Ok(found)
    }
}

fn id_of(found: &Found) -> i64 {
    match found {
        Ok(record) => record.id,
        Err(unreadable) => unreadable.id,
    }
}

//! Which record is handed out next.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::time::UnixMs;

use super::error::Result;
use super::fields::sql_ms;
use super::holdings::Holdings;
use super::records::{self, COLUMNS, FROM, Stored, Unreadable};

/// Where to look for records that nobody holds.
///
/// A record that was never handed out is found by walking its lane once, by id; one that comes back to its
/// lane is remembered by id. So nothing is searched twice, and memory holds only what came back.
#[derive(Default)]
pub(super) struct Dispatch {
    again: BTreeSet<(Lane, i64)>,
    cursors: BTreeMap<Lane, i64>,
    /// The rows of crawls that cannot be read: nothing of them is handed out.
    passed_over: BTreeSet<i64>,
    stirred: bool,
}

/// A record that may be handed out, or is in the way of the others.
pub(super) type Found = std::result::Result<Stored, Unreadable>;

/// What a record's crawl must be, for the record to be handed out.
const GOING: &str = "c.paused IS NULL";

impl Dispatch {
    /// Has a record looked at again: its state decides whether it is handed out.
    pub(super) fn offer(&mut self, id: i64, lane: Lane) {
        // Tasks are found in the order of their priorities, wherever they were.
        if lane != Lane::Task {
            self.again.insert((lane, id));
        }
        self.stirred = true;
    }

    /// Notes that records have become available.
    pub(super) fn stir(&mut self) {
        self.stirred = true;
    }

    /// Whether anything has become available since the last call.
    pub(super) fn take_stirred(&mut self) -> bool {
        std::mem::take(&mut self.stirred)
    }

    /// Hands out nothing more of the crawl in row `crawl`, until all lanes are walked again.
    pub(super) fn pass_over(&mut self, crawl: i64) {
        self.passed_over.insert(crawl);
    }

    /// Walks all lanes from their start once more: what was passed over there has become available.
    /// What came back is found on the way, too.
    pub(super) fn walk_again(&mut self) {
        self.again.clear();
        self.cursors.clear();
        self.passed_over.clear();
        self.stirred = true;
    }

    /// The next records of a line, `most` of them at most.
    pub(super) fn next(
        &mut self,
        db: &Connection,
        holdings: &Holdings,
        line: SourceQueue,
        now: UnixMs,
        most: usize,
    ) -> Result<Vec<Found>> {
        match line {
            SourceQueue::Due => self.due(db, holdings, now, most),
            SourceQueue::Priority => self.next_in(db, holdings, Lane::Priority, most),
            // A lane has no time to live here.
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

    /// Records that came back to `lane`. One that has been taken, parked or deleted since is passed over, and so
    /// is one whose crawl is paused: it is found by [`Dispatch::walk_again`].
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

    /// Records of `lane` that were never handed out, beyond those `found` already. The lane is written out, for the partial index.
    fn walk(
        &mut self,
        db: &Connection,
        holdings: &Holdings,
        lane: Lane,
        most: usize,
        found: &mut Vec<Found>,
    ) -> Result<()> {
        // What is in no lane is found too, so that it is named.
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

    /// Parked records that are due. Those in hand keep their place until they start, hence the filter.
    fn due(&self, db: &Connection, holdings: &Holdings, now: UnixMs, most: usize) -> Result<Vec<Found>> {
        let mut due = db.prepare_cached(&format!(
            "{COLUMNS} {FROM} WHERE r.due <= ?1 AND r.lane <> 'task' AND {GOING} ORDER BY r.due"
        ))?;
        let mut rows = due.query([sql_ms(now)])?;
        let mut found = Vec::new();
        while found.len() < most
            && let Some(row) = rows.next()?
        {
            if !holdings.is_held(row.get(0)?) && !self.passed_over.contains(&row.get(1)?) {
                found.push(Stored::read(row)?);
            }
        }
        Ok(found)
    }

    /// Tasks that may be done now, the highest priority first, and of one priority in the order in which they were admitted. What is
    /// held and what is put aside is passed over: that is as much as is under way.
    fn tasks(&self, db: &Connection, holdings: &Holdings, now: UnixMs, most: usize) -> Result<Vec<Found>> {
        let mut tasks = db.prepare_cached(&format!(
            "{COLUMNS}, t.payload FROM tasks t CROSS JOIN records r CROSS JOIN crawls c
             WHERE t.record IS NOT NULL AND r.id = t.record AND t.crawl = r.crawl AND t.key = r.url AND c.key = r.crawl
               AND (r.due IS NULL OR r.due <= ?1) AND {GOING}
             ORDER BY t.priority DESC, t.record"
        ))?;
        let mut rows = tasks.query([sql_ms(now)])?;
        let mut found = Vec::new();
        while found.len() < most
            && let Some(row) = rows.next()?
        {
            if !holdings.is_held(row.get(0)?) && !self.passed_over.contains(&row.get(1)?) {
                found.push(Stored::read(row)?.map(|stored| stored.with_payload(row.get("payload").ok())));
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

//! Which record is handed out next, and which have been.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::Connection;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::line::Line;
use trawl_common::time::UnixMs;
use trawl_engine::Receipt;

use super::error::Result;
use super::hands::Hands;
use super::records::{self, STORED, Stored, sql_ms};

/// What consumers have been given, and where to look for more.
///
/// A record that was never parked is found by walking its lane once, by id; one that comes back to its
/// lane is remembered by id. So nothing is searched twice, and memory holds only what is in hand.
#[derive(Default)]
pub(super) struct Lines {
    sent: HashMap<i64, Sent>,
    again: BTreeSet<(Lane, i64)>,
    cursors: BTreeMap<Lane, i64>,
    sessions: u64,
    stirred: bool,
}

/// A delivery that is not settled yet.
struct Sent {
    session: u64,
    line: Line,
    lane: Lane,
}

/// What a record's crawl must be, for the record to be handed out.
const GOING: &str = "c.paused IS NULL";

/// What a consumer asks for.
#[derive(Clone, Copy)]
pub(super) struct Want {
    /// Who asks.
    pub(super) session: u64,
    /// How many deliveries of each line it may have unsettled.
    pub(super) prefetch: usize,
    /// How many it takes now.
    pub(super) max: usize,
}

/// What it gets.
pub(super) struct Pull {
    /// The records, in order of delivery.
    pub(super) records: Vec<Stored>,
    /// With none: when the next parked one comes back.
    pub(super) next_due: Option<UnixMs>,
}

impl Lines {
    /// A number for a new consumer.
    pub(super) fn begin_session(&mut self) -> u64 {
        self.sessions += 1;
        self.sessions
    }

    /// Settles all that a consumer was given, because it has gone.
    pub(super) fn end_session(&mut self, session: u64) {
        let ended: Vec<_> = self.sent.extract_if(|_, sent| sent.session == session).collect();
        for (id, sent) in ended {
            self.offer(id, sent.lane);
        }
    }

    /// Forgets a delivery, unless its receipt is of another session.
    pub(super) fn settle(&mut self, receipt: &Receipt) {
        let id = receipt.tag as i64;
        if self.sent.get(&id).is_some_and(|sent| sent.session == receipt.session)
            && let Some(sent) = self.sent.remove(&id)
        {
            self.offer(id, sent.lane);
        }
    }

    /// Has a record looked at again: its state decides whether it is handed out.
    pub(super) fn offer(&mut self, id: i64, lane: Lane) {
        self.again.insert((lane, id));
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

    /// Walks all lanes from their start once more: what was passed over there has become available.
    /// What came back is found on the way, too.
    pub(super) fn walk_again(&mut self) {
        self.again.clear();
        self.cursors.clear();
        self.stirred = true;
    }

    /// Forgets every delivery and walks all lanes from their start.
    pub(super) fn restart(&mut self) {
        self.sent.clear();
        self.walk_again();
    }

    /// Hands out what is available now: parked records whose time has come, then lane by lane.
    pub(super) fn pull(&mut self, db: &Connection, hands: &Hands, want: &Want) -> Result<Pull> {
        let now = UnixMs::now();
        let mut all = Vec::new();
        for line in Line::ALL {
            let room = want.prefetch.saturating_sub(self.unsettled(want.session, line));
            let room = room.min(want.max - all.len());
            let found = match line {
                _ if room == 0 => continue,
                Line::Due => self.due(db, hands, now, room)?,
                Line::Priority => self.next_in(db, hands, Lane::Priority, room)?,
                // A lane has no time to live here.
                Line::Expired => continue,
                Line::Bulk => self.next_in(db, hands, Lane::Bulk, room)?,
            };
            for record in &found {
                self.sent.insert(record.id, Sent { session: want.session, line, lane: record.lane });
            }
            all.extend(found);
        }
        let next_due = if all.is_empty() { records::next_due(db, now)? } else { None };
        Ok(Pull { records: all, next_due })
    }

    fn unsettled(&self, session: u64, line: Line) -> usize {
        self.sent.values().filter(|sent| sent.session == session && sent.line == line).count()
    }

    fn is_taken(&self, hands: &Hands, id: i64) -> bool {
        self.sent.contains_key(&id) || hands.is_held(id)
    }

    /// Parked records that are due. Those in hand keep their place until they start, hence the filter.
    fn due(&self, db: &Connection, hands: &Hands, now: UnixMs, room: usize) -> Result<Vec<Stored>> {
        let mut due = db.prepare_cached(&format!("{STORED} WHERE r.due <= ?1 AND {GOING} ORDER BY r.due"))?;
        let mut rows = due.query([sql_ms(now)])?;
        let mut found = Vec::new();
        while found.len() < room
            && let Some(row) = rows.next()?
        {
            if !self.is_taken(hands, row.get(0)?) {
                found.push(Stored::read(row)?);
            }
        }
        Ok(found)
    }

    fn next_in(&mut self, db: &Connection, hands: &Hands, lane: Lane, room: usize) -> Result<Vec<Stored>> {
        let mut found = self.returned(db, hands, lane, room)?;
        self.walk(db, hands, lane, room, &mut found)?;
        Ok(found)
    }

    /// Records that came back to `lane`. One that has been taken, parked or deleted since is passed over, and so
    /// is one whose crawl is paused: it is found by [`Lines::walk_again`].
    fn returned(&mut self, db: &Connection, hands: &Hands, lane: Lane, room: usize) -> Result<Vec<Stored>> {
        let mut one =
            db.prepare_cached(&format!("{STORED} WHERE r.id = ?1 AND r.due IS NULL AND {GOING}"))?;
        let mut found = Vec::new();
        while found.len() < room
            && let Some(&(_, id)) = self.again.range((lane, i64::MIN)..=(lane, i64::MAX)).next()
        {
            self.again.remove(&(lane, id));
            let mut rows = one.query([id])?;
            if let Some(row) = rows.next()?
                && !self.is_taken(hands, id)
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
        hands: &Hands,
        lane: Lane,
        room: usize,
        found: &mut Vec<Stored>,
    ) -> Result<()> {
        let sql = format!(
            "{STORED} WHERE r.lane = '{lane}' AND r.due IS NULL AND r.id > ?1 AND {GOING} ORDER BY r.id"
        );
        let mut next = db.prepare_cached(&sql)?;
        let returned: BTreeSet<i64> = found.iter().map(|record| record.id).collect();
        let mut cursor = self.cursors.get(&lane).copied().unwrap_or_default();
        let mut rows = next.query([cursor])?;
        while found.len() < room {
            let Some(row) = rows.next()? else {
                cursor = records::newest(db)?;
                break;
            };
            cursor = row.get(0)?;
            if !returned.contains(&cursor) && !self.is_taken(hands, cursor) {
                found.push(Stored::read(row)?);
            }
        }
        self.cursors.insert(lane, cursor);
        Ok(())
    }
}

//! The table `records`: every URL without a terminal state.

use rusqlite::{Connection, OptionalExtension, Row, params};
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::{Hop, Message};
use trawl_common::frontier::{Record, State, UrlState};
use trawl_common::names::CrawlRef;
use trawl_common::time::UnixMs;
use trawl_common::web::url::{CanonicalUrl, Fingerprint};

use super::crawls::Crawl;
use super::error::{Fault, Result};
use super::seen::Seen;
use super::store::Memory;

/// Where the record of one URL is found. Built by the caller, so that the writer need not hash.
pub(super) struct Address {
    pub(super) url: Fingerprint,
    pub(super) crawl: CrawlRef,
}

/// What concerns a URL, and where its record is found.
pub(super) type Addressed<T> = (Address, T);

impl Address {
    /// The address of `url` in `crawl`. Spiders don't mix: each has seen a URL, or not, on its own.
    pub(super) fn new(crawl: &CrawlRef, url: &CanonicalUrl) -> Self {
        Self { url: Fingerprint::of(&format!("{}\n{url}", crawl.spider)), crawl: crawl.clone() }
    }
}

/// What is known of a URL.
pub(super) struct Sight {
    /// The row of its record, in this crawl or another, if it has one.
    pub(super) id: Option<i64>,
    /// What the rules go by.
    pub(super) url: UrlState,
}

/// Looks a URL up that `crawl` may know.
pub(super) fn sight(
    db: &Connection,
    memory: &mut Memory,
    crawl: &Crawl,
    address: &Address,
    now: UnixMs,
) -> Result<Sight> {
    let Some(id) = memory.seen.find(db, address)? else {
        return Ok(Sight { id: None, url: UrlState::Unseen });
    };
    let mut find =
        db.prepare_cached("SELECT crawl, lane, due, attempts, starts, deadline FROM records WHERE id = ?1")?;
    let mut rows = find.query([id])?;
    let Some(row) = rows.next()? else { return Ok(Sight { id: None, url: UrlState::Ended }) };
    if row.get::<_, i64>(0)? != crawl.key {
        return Ok(Sight { id: Some(id), url: UrlState::Ended });
    }
    // A record and its message are one, so there is nothing to confirm; and what waits in a lane is found by its row.
    let waits = match row.get::<_, Option<i64>>(2)?.map(unix_ms) {
        Some(until) => State::Parked { until, unconfirmed: Some(until) },
        None => State::Queued { since: UnixMs(0) },
    };
    let record = Record {
        state: memory.hands.state(id, now).unwrap_or(waits),
        lane: lane(row, 1)?,
        deadline: deadline(row.get(5)?, crawl.idle),
        attempts: row.get(3)?,
        starts: row.get(4)?,
        has_begun: memory.hands.has_begun(id),
    };
    Ok(Sight { id: Some(id), url: UrlState::Pending(record) })
}

/// The row of a URL's record in its crawl, if it has one.
pub(super) fn row_of(db: &Connection, seen: &mut Seen, address: &Address) -> Result<Option<i64>> {
    let Some(id) = seen.find(db, address)? else { return Ok(None) };
    let CrawlRef { id: crawl, spider } = &address.crawl;
    let mut find = db.prepare_cached(
        "SELECT 1 FROM records r JOIN crawls c ON c.key = r.crawl
         WHERE r.id = ?1 AND c.id = ?2 AND c.spider = ?3",
    )?;
    Ok(find.exists(params![id, crawl.as_str(), spider.as_str()])?.then_some(id))
}

/// Marks a URL seen that was not, and writes its record. Returns the record's row.
pub(super) fn insert(
    db: &Connection,
    seen: &mut Seen,
    crawl: &Crawl,
    (address, message): &Addressed<Message>,
) -> Result<i64> {
    let id = write(db, crawl, message)?;
    seen.add(db, address, crawl.key, id)?;
    Ok(id)
}

/// Writes the record of a URL that has ended, whatever was seen. Returns its row, if it had none by now.
pub(super) fn insert_again(
    db: &Connection,
    seen: &mut Seen,
    crawl: &Crawl,
    (address, message): &Addressed<Message>,
) -> Result<Option<i64>> {
    if let Some(old) = seen.find(db, address)? {
        if db.prepare_cached("SELECT 1 FROM records WHERE id = ?1")?.exists([old])? {
            return Ok(None);
        }
        seen.remove(db, address, old)?;
    }
    let id = write(db, crawl, message)?;
    seen.add(db, address, crawl.key, id)?;
    Ok(Some(id))
}

/// Marks a URL seen as if it had ended, unless it was seen before.
pub(super) fn mark_seen(db: &Connection, seen: &mut Seen, crawl: i64, address: &Address) -> Result<()> {
    if seen.find(db, address)?.is_some() {
        return Ok(());
    }
    // A row that is used up without a record.
    db.prepare_cached("INSERT INTO records (crawl, url, lane, depth) VALUES (?1, '', 'bulk', 0)")?
        .execute([crawl])?;
    let id = db.last_insert_rowid();
    delete(db, id)?;
    seen.add(db, address, crawl, id)?;
    seen.add_for_spider(db, address, id)
}

fn write(db: &Connection, crawl: &Crawl, message: &Message) -> Result<i64> {
    db.prepare_cached(
        "INSERT INTO records (crawl, url, lane, depth, referrer, deadline, slot)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        crawl.key,
        message.url.as_str(),
        message.lane.as_str(),
        message.depth,
        message.referrer.as_ref().map(CanonicalUrl::as_str),
        message.deadline.map(|deadline| sql_ms(deadline) - crawl.idle),
        message.slot.map(sql_ms),
    ])?;
    Ok(db.last_insert_rowid())
}

/// Writes what a transition has made of a record. What was parked and is in hand keeps its place until it starts. The slot is
/// used up, or another's, once the record has started or is parked.
pub(super) fn update(db: &Connection, id: i64, record: &Record) -> Result<()> {
    let (due, keeps_slot) = match record.state {
        State::New { .. } | State::Queued { .. } => (None, true),
        State::Parked { until, .. } => (Some(sql_ms(until)), false),
        State::Held { has_started: true, .. } => (None, false),
        State::Held { has_started: false, .. } => return Ok(()),
    };
    db.prepare_cached(
        "UPDATE records SET due = ?2, starts = ?3, attempts = ?4, slot = iif(?5, slot, NULL) WHERE id = ?1",
    )?
    .execute(params![id, due, record.starts, record.attempts, keeps_slot])?;
    Ok(())
}

/// Notes what a parked message carries besides its record: its slot or its turn in line, its way so far, how often it was
/// refused.
pub(super) fn set_luggage(db: &Connection, id: i64, message: &Message) -> Result<()> {
    let hop = message.hop.as_ref();
    let sql = "UPDATE records SET slot = ?2, hop = ?3, hops = ?4, refusals = ?5, turn = ?6, looks = ?7 WHERE id = ?1";
    db.prepare_cached(sql)?.execute(params![
        id,
        message.slot.map(sql_ms),
        hop.map(|hop| hop.url.as_str()),
        hop.map_or(0, |hop| hop.count),
        message.refusals,
        message.turn.map(|(turn, _)| sql_ms(turn)),
        message.turn.map_or(0, |(_, looks)| looks),
    ])?;
    Ok(())
}

/// Deletes a record.
pub(super) fn delete(db: &Connection, id: i64) -> Result<()> {
    db.prepare_cached("DELETE FROM records WHERE id = ?1")?.execute([id])?;
    Ok(())
}

/// Deletes the records of a crawl, and tells of each one's row and URL.
pub(super) fn delete_all(db: &Connection, crawl: i64, mut tell: impl FnMut(i64, &str)) -> Result<()> {
    let mut delete = db.prepare_cached("DELETE FROM records WHERE crawl = ?1 RETURNING id, url")?;
    let mut rows = delete.query([crawl])?;
    while let Some(row) = rows.next()? {
        tell(row.get(0)?, row.get_ref(1)?.as_str().map_err(Fault::corrupt)?);
    }
    Ok(())
}

/// When the next parked record comes back, after `now`.
pub(super) fn next_due(db: &Connection, now: UnixMs) -> Result<Option<UnixMs>> {
    let mut first = db.prepare_cached("SELECT due FROM records WHERE due > ?1 ORDER BY due LIMIT 1")?;
    Ok(first.query_row([sql_ms(now)], |row| row.get(0)).optional()?.map(unix_ms))
}

/// The newest record's row; 0 if there is none.
pub(super) fn newest(db: &Connection) -> Result<i64> {
    let mut newest = db.prepare_cached("SELECT coalesce(max(id), 0) FROM records")?;
    Ok(newest.query_row([], |row| row.get(0))?)
}

/// A record as a message, its texts still unread: that is left to the consumer's thread.
pub(super) struct Stored {
    /// Its row.
    pub(super) id: i64,
    /// Its lane.
    pub(super) lane: Lane,
    url: String,
    crawl: String,
    spider: String,
    depth: u16,
    deadline: Option<UnixMs>,
    due: Option<i64>,
    slot: Option<i64>,
    referrer: Option<String>,
    hop: Option<String>,
    hops: u8,
    refusals: u16,
    turn: Option<i64>,
    looks: u8,
}

/// The start of every query that [`Stored::read`] reads.
pub(super) const STORED: &str = "SELECT r.id, r.lane, r.url, c.id, c.spider, r.depth, r.deadline, r.due, \
                                 r.slot, r.referrer, c.idle, r.hop, r.hops, r.refusals, r.turn, r.looks FROM records r JOIN crawls c ON c.key = r.crawl";

impl Stored {
    /// Reads a row of a query that begins with [`STORED`].
    pub(super) fn read(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            lane: lane(row, 1)?,
            url: row.get(2)?,
            crawl: row.get(3)?,
            spider: row.get(4)?,
            depth: row.get(5)?,
            deadline: deadline(row.get(6)?, row.get(10)?),
            due: row.get(7)?,
            slot: row.get(8)?,
            referrer: row.get(9)?,
            hop: row.get(11)?,
            hops: row.get(12)?,
            refusals: row.get(13)?,
            turn: row.get(14)?,
            looks: row.get(15)?,
        })
    }

    /// The message.
    pub(super) fn message(self) -> Result<Message> {
        let crawl = CrawlRef {
            id: self.crawl.try_into().map_err(Fault::corrupt)?,
            spider: self.spider.try_into().map_err(Fault::corrupt)?,
        };
        Ok(Message {
            url: CanonicalUrl::recorded(&self.url).map_err(Fault::corrupt)?,
            crawl,
            lane: self.lane,
            depth: self.depth,
            deadline: self.deadline,
            until: self.due.map(unix_ms),
            wake: self.due.map(unix_ms),
            slot: self.slot.map(unix_ms),
            turn: self.turn.map(|turn| (unix_ms(turn), self.looks)),
            referrer: url(self.referrer)?,
            hop: url(self.hop)?.map(|url| Hop { url, count: self.hops }),
            refusals: self.refusals,
            is_ours: true,
        })
    }
}

fn url(stored: Option<String>) -> Result<Option<CanonicalUrl>> {
    stored.map(|url| url.parse()).transpose().map_err(Fault::corrupt)
}

fn lane(row: &Row<'_>, column: usize) -> Result<Lane> {
    row.get_ref(column)?.as_str().map_err(Fault::corrupt)?.parse().map_err(Fault::corrupt)
}

/// A deadline, of how it is stored: as it would be if its crawl had never been paused.
fn deadline(stored: Option<i64>, idle: i64) -> Option<UnixMs> {
    stored.map(|stored| unix_ms(stored.saturating_add(idle)))
}

/// An instant as SQLite stores it; one beyond its range is as far as it goes.
pub(super) fn sql_ms(instant: UnixMs) -> i64 {
    i64::try_from(instant.0).unwrap_or(i64::MAX)
}

/// An instant as it was stored.
pub(super) fn unix_ms(stored: i64) -> UnixMs {
    UnixMs(stored.max(0) as u64)
}

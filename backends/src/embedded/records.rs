//! The table `records`: every URL without a terminal state.

use rusqlite::{Connection, OptionalExtension, Row, params};
use trawl_common::lane::Lane;
use trawl_common::message::{Hop, Message};
use trawl_common::names::CrawlRef;
use trawl_common::ports::Parking;
use trawl_common::time::UnixMs;
use trawl_common::url::{CanonicalUrl, Fingerprint};

use super::crawls::Crawl;
use super::error::{Fault, Result};
use super::seen::Seen;

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
pub(super) enum Sight {
    /// Its spider never saw it.
    Unseen,
    /// It has its terminal state, or belongs to another crawl.
    Ended,
    /// It has a record in this crawl.
    Pending(Record),
}

/// A record, as far as transitions need it.
pub(super) struct Record {
    /// Its row, never used twice.
    pub(super) id: i64,
    /// The row of its crawl.
    pub(super) crawl: i64,
    /// Its lane.
    pub(super) lane: Lane,
    /// Until when it is parked, if it is.
    pub(super) due: Option<UnixMs>,
    /// Failed attempts so far.
    pub(super) attempts: u32,
    /// Starts without an end so far.
    pub(super) starts: u32,
    /// When it is no longer worth fetching.
    pub(super) deadline: Option<UnixMs>,
    /// How many more pages its crawl may have done; `None` for any number.
    pub(super) room: Option<u64>,
    /// Whether a person holds its crawl.
    pub(super) is_paused: bool,
}

/// Looks a URL up.
pub(super) fn sight(db: &Connection, seen: &mut Seen, address: &Address) -> Result<Sight> {
    let Some(id) = seen.find(db, address)? else { return Ok(Sight::Unseen) };
    let mut find = db.prepare_cached(
        "SELECT r.crawl, r.lane, r.due, r.attempts, r.deadline, c.idle, c.paused IS NOT NULL, r.starts,
                max(c.max_pages - c.done, 0)
         FROM records r JOIN crawls c ON c.key = r.crawl
         WHERE r.id = ?1 AND c.id = ?2 AND c.spider = ?3",
    )?;
    let CrawlRef { id: crawl, spider } = &address.crawl;
    let mut rows = find.query(params![id, crawl.as_str(), spider.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(Sight::Ended) };
    Ok(Sight::Pending(Record {
        id,
        crawl: row.get(0)?,
        lane: lane(row, 1)?,
        due: row.get::<_, Option<i64>>(2)?.map(unix_ms),
        attempts: row.get(3)?,
        deadline: deadline(row.get(4)?, row.get(5)?),
        is_paused: row.get(6)?,
        starts: row.get(7)?,
        room: row.get::<_, Option<i64>>(8)?.map(|room| room as u64),
    }))
}

/// Marks a URL seen and writes its record, unless its spider saw it before. Returns the new record's row.
pub(super) fn insert(
    db: &Connection,
    seen: &mut Seen,
    crawl: &Crawl,
    (address, message): &Addressed<Message>,
) -> Result<Option<i64>> {
    if seen.find(db, address)?.is_some() {
        return Ok(None);
    }
    let id = write(db, crawl, message)?;
    seen.add(db, address, crawl.key, id)?;
    Ok(Some(id))
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

/// Counts a start. What the record was parked for is over.
pub(super) fn start(db: &Connection, id: i64) -> Result<()> {
    db.prepare_cached("UPDATE records SET starts = starts + 1, due = NULL, slot = NULL WHERE id = ?1")?
        .execute([id])?;
    Ok(())
}

/// Puts a record aside.
pub(super) fn park(db: &Connection, id: i64, parking: &Parking) -> Result<()> {
    db.prepare_cached("UPDATE records SET due = ?2, slot = NULL, attempts = attempts + ?3 WHERE id = ?1")?
        .execute(params![id, sql_ms(parking.until), parking.failed])?;
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

/// Undoes the starts of a record whose last one has ended: it is no suspect.
pub(super) fn reset_starts(db: &Connection, id: i64) -> Result<()> {
    db.prepare_cached("UPDATE records SET starts = 0 WHERE id = ?1 AND starts > 0")?.execute([id])?;
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

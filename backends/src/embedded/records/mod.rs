//! The table `records`: every URL and every task without a terminal state.

pub(crate) mod address;
pub(crate) mod corrupt;
pub(crate) mod holdings;
pub(crate) mod payloads;

use rusqlite::{Connection, OptionalExtension, Row, params};
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::{Hop, Message};
use trawl_common::frontier::{Key, Record, RequestKey, State, UrlState, Work};
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Error, NewWork};
use trawl_common::time::UnixMs;

use crate::embedded::crawls::Crawl;
use crate::embedded::records::address::Address;
use crate::embedded::records::holdings::Holdings;
use crate::embedded::seen::Seen;
use crate::embedded::store::error::{Fault, Result};
use crate::embedded::store::fields::{Fields, sql_ms, unreadable};

/// Returns the record in a row, if it belongs to the crawl.
pub(crate) fn read(
    db: &Connection,
    holdings: &Holdings,
    id: i64,
    crawl: &Crawl,
    now: UnixMs,
) -> Result<Option<Record>> {
    let mut find = db.prepare_cached(
        "SELECT url, lane, due, attempts, starts, deadline + ?3 AS deadline FROM records WHERE id = ?1 AND crawl = ?2",
    )?;
    let mut rows = find.query(params![id, crawl.key, crawl.idle.as_millis() as i64])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let fields = Fields::new(row, "record", "url");
    Ok(Some(Record {
        state: match holdings.state(id, now) {
            Some(held) => held,
            None => waits(fields.optional_instant("due")?),
        },
        lane: fields.text("lane")?,
        deadline: fields.optional_instant("deadline")?,
        attempts: fields.number("attempts")?,
        starts: fields.number("starts")?,
        lapsed: Vec::new(),
        has_begun: holdings.has_begun(id),
    }))
}

/// Returns a URL of a crawl, and the row of its record, in this crawl or another, if it has one.
pub(crate) fn find(
    db: &Connection,
    seen: &mut Seen,
    holdings: &Holdings,
    crawl: &Crawl,
    address: &Address,
    now: UnixMs,
) -> Result<(Option<i64>, UrlState)> {
    let Some(id) = seen.find(db, address)? else { return Ok((None, UrlState::Unseen)) };
    let record = read(db, holdings, id, crawl, now)?;
    Ok((Some(id), record.map_or(UrlState::Ended, UrlState::Pending)))
}

/// Returns the row of the crawl of a record.
pub(crate) fn crawl_of(db: &Connection, id: i64) -> Result<i64> {
    let mut find = db.prepare_cached("SELECT crawl FROM records WHERE id = ?1")?;
    Ok(find.query_row([id], |row| row.get(0))?)
}

/// Returns the state of a record that nobody holds. A record and its message are one row, so there is nothing to
/// confirm, and waiting records are found by their rows.
fn waits(due: Option<UnixMs>) -> State {
    match due {
        Some(until) => State::Parked { until, unconfirmed: Some(until), in_pause: false },
        None => State::Queued { since: UnixMs(0) },
    }
}

/// Marks an unseen URL as seen, and writes its record.
pub(crate) fn insert(
    db: &Connection,
    seen: &mut Seen,
    crawl: &Crawl,
    address: &Address,
    url: &NewWork,
) -> Result<()> {
    let id = write(db, crawl, url)?;
    seen.add(db, address, crawl.key, id)
}

/// Writes the record of a URL that has ended, even if it was seen. Returns whether it had none by now.
pub(crate) fn insert_again(
    db: &Connection,
    seen: &mut Seen,
    crawl: &Crawl,
    address: &Address,
    url: &NewWork,
) -> Result<bool> {
    if let Some(old) = seen.find(db, address)? {
        if exists(db, old)? {
            return Ok(false);
        }
        seen.remove(db, address, old)?;
    }
    insert(db, seen, crawl, address, url)?;
    Ok(true)
}

/// Marks a URL as seen as if it had ended, unless it was seen before.
pub(crate) fn mark_seen(db: &Connection, seen: &mut Seen, crawl: i64, address: &Address) -> Result<()> {
    if seen.find(db, address)?.is_some() {
        return Ok(());
    }
    // This uses up a row without leaving a record.
    db.prepare_cached("INSERT INTO records (crawl, url, lane, depth) VALUES (?1, '', 'bulk', 0)")?
        .execute([crawl])?;
    let id = db.last_insert_rowid();
    delete(db, id)?;
    seen.add(db, address, crawl, id)?;
    seen.add_for_spider(db, address, id)
}

fn write(db: &Connection, crawl: &Crawl, new: &NewWork) -> Result<i64> {
    let NewWork { work, lane, deadline, depth, referrer, .. } = new;
    let hop = new.hop();
    db.prepare_cached(
        "INSERT INTO records (crawl, url, lane, depth, referrer, deadline, hop) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        crawl.key,
        work.as_str(),
        lane.as_str(),
        depth,
        referrer.as_ref().map(Key::as_str),
        deadline.map(|deadline| sql_ms(deadline) - crawl.idle.as_millis() as i64),
        hop.as_ref().map(Hop::target),
    ])?;
    let id = db.last_insert_rowid();
    payloads::insert(db, crawl.key, work, id)?;
    Ok(id)
}

/// Stores that a URL waits in its lane, or that its start was counted. A parked one keeps its due time until it
/// starts; then its slot is used up.
pub(crate) fn update(db: &Connection, id: i64, record: &Record) -> Result<()> {
    let keeps_slot = !matches!(record.state, State::Held { .. });
    db.prepare_cached(
        "UPDATE records SET due = NULL, starts = ?2, slot = iif(?3, slot, NULL) WHERE id = ?1",
    )?
    .execute(params![id, record.starts, keeps_slot])?;
    Ok(())
}

/// Stores that a URL is parked, with the state in its message: its slot or its position in the host's waitlist,
/// its redirects so far, the numbers of refusals and lapses, and since when it has been put off.
pub(crate) fn park(
    db: &Connection,
    id: i64,
    record: &Record,
    until: UnixMs,
    message: &Message,
) -> Result<()> {
    let hop = message.hop.as_ref();
    db.prepare_cached(
        "UPDATE records SET due = ?2, starts = ?3, attempts = ?4, slot = ?5, hop = ?6, hops = ?7, refusals = ?8, turn = ?9,
                            looks = ?10, lapses = ?11, since = ?12
         WHERE id = ?1",
    )?
    .execute(params![
        id,
        sql_ms(until),
        record.starts,
        record.attempts,
        message.slot.map(sql_ms),
        hop.map(Hop::target),
        hop.map_or(0, |hop| hop.count),
        message.refusals,
        message.turn.map(|(turn, _)| sql_ms(turn)),
        message.turn.map_or(0, |(_, looks)| looks),
        message.lapses,
        message.since.map(sql_ms),
    ])?;
    Ok(())
}

/// Returns whether there is a record in row `id`.
pub(crate) fn exists(db: &Connection, id: i64) -> Result<bool> {
    Ok(db.prepare_cached("SELECT 1 FROM records WHERE id = ?1")?.exists([id])?)
}

/// Deletes a record.
pub(crate) fn delete(db: &Connection, id: i64) -> Result<()> {
    db.prepare_cached("DELETE FROM records WHERE id = ?1")?.execute([id])?;
    Ok(())
}

/// Deletes the records of a crawl, and passes the row and the URL of each to `tell`.
pub(crate) fn delete_all(db: &Connection, crawl: i64, mut tell: impl FnMut(i64, &str)) -> Result<()> {
    let mut delete = db.prepare_cached("DELETE FROM records WHERE crawl = ?1 RETURNING id, url")?;
    let mut rows = delete.query([crawl])?;
    while let Some(row) = rows.next()? {
        tell(row.get(0)?, row.get_ref(1)?.as_str().map_err(Fault::corrupt)?);
    }
    Ok(())
}

/// Returns when the next parked record after `now` is due: of a task, or of a URL.
pub(crate) fn next_due(db: &Connection, now: UnixMs, of_tasks: bool) -> Result<Option<UnixMs>> {
    // Written out, for the partial indexes.
    let of_lane = if of_tasks { "lane = 'task'" } else { "lane <> 'task'" };
    let sql = format!("SELECT due FROM records WHERE due > ?1 AND {of_lane} ORDER BY due LIMIT 1");
    let mut first = db.prepare_cached(&sql)?;
    Ok(first
        .query_row([sql_ms(now)], |row| row.get(0))
        .optional()?
        .map(|due: i64| UnixMs(due.cast_unsigned())))
}

/// Returns the newest record's row; 0 if there is none.
pub(crate) fn newest(db: &Connection) -> Result<i64> {
    let mut newest = db.prepare_cached("SELECT coalesce(max(id), 0) FROM records")?;
    Ok(newest.query_row([], |row| row.get(0))?)
}

/// A record that is handed out, with its texts still unparsed: that is left to the caller's thread.
pub(crate) struct Stored {
    /// Its row.
    pub(crate) id: i64,
    /// The row of its crawl.
    pub(crate) crawl: i64,
    /// Its lane.
    pub(crate) lane: Lane,
    /// The time when it is due, if it is parked.
    pub(crate) due: Option<UnixMs>,
    /// The time from which it is no longer worth fetching.
    deadline: Option<UnixMs>,
    attempts: u32,
    starts: u32,
    url: String,
    /// The payload of the task or the request, if it is one.
    payload: Option<String>,
    depth: u16,
    slot: Option<UnixMs>,
    referrer: Option<String>,
    hop: Option<String>,
    hops: u8,
    refusals: u16,
    lapses: u16,
    turn: Option<UnixMs>,
    looks: u8,
    since: Option<UnixMs>,
}

/// A record that cannot be read.
#[derive(Clone)]
pub(crate) struct Unreadable {
    /// Its row.
    pub(crate) id: i64,
    /// The row of its crawl.
    pub(crate) crawl: i64,
    /// The stored text of its URL.
    pub(crate) url: String,
    /// The error, which names the field.
    pub(crate) error: Error,
}

/// The columns that [`Stored::read`] reads.
pub(crate) const COLUMNS: &str = "SELECT r.id, r.crawl, r.lane, r.due, r.attempts, r.starts, r.deadline + c.idle AS deadline, \
                                 r.url AS url, r.depth, r.slot, r.referrer, r.hop, r.hops, r.refusals, r.turn, r.looks, r.lapses, r.since";

/// The tables of all queries for these columns.
pub(crate) const FROM: &str = "FROM records r JOIN crawls c ON c.key = r.crawl";

impl Stored {
    /// Reads a row of a query that begins with [`COLUMNS`].
    pub(crate) fn read(row: &Row<'_>) -> Result<std::result::Result<Self, Unreadable>> {
        let fields = Fields::new(row, "record", "url");
        match Self::new(row, &fields) {
            Err(Fault::Rule(error)) => {
                let url = row.get_ref("url")?.as_bytes().map_err(rusqlite::Error::from)?;
                let url = String::from_utf8_lossy(url).into_owned();
                Ok(Err(Unreadable { id: row.get(0)?, crawl: row.get(1)?, url, error }))
            }
            read => read.map(Ok),
        }
    }

    fn new(row: &Row<'_>, fields: &Fields<'_, '_>) -> Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            crawl: row.get(1)?,
            lane: fields.text(2)?,
            due: fields.optional_instant(3)?,
            attempts: fields.number(4)?,
            starts: fields.number(5)?,
            deadline: fields.optional_instant(6)?,
            url: fields.text(7)?,
            payload: None,
            depth: fields.number(8)?,
            slot: fields.optional_instant(9)?,
            referrer: fields.optional_text(10)?,
            hop: fields.optional_text(11)?,
            hops: fields.number(12)?,
            refusals: fields.number(13)?,
            turn: fields.optional_instant(14)?,
            looks: fields.number(15)?,
            lapses: fields.number(16)?,
            since: fields.optional_instant(17)?,
        })
    }

    /// Adds the payload, if it is a request.
    pub(crate) fn with_request(self, db: &Connection) -> Result<Self> {
        match RequestKey::is_one(&self.url) {
            true => Ok(Self { payload: payloads::of_request(db, self.crawl, &self.url)?, ..self }),
            false => Ok(self),
        }
    }

    /// Sets the payload.
    pub(crate) fn with_payload(self, payload: Option<String>) -> Self {
        Self { payload, ..self }
    }

    /// Returns the record for the rules. Nobody holds it.
    pub(crate) fn record(&self, holdings: &Holdings) -> Record {
        Record {
            state: waits(self.due),
            lane: self.lane,
            deadline: self.deadline,
            attempts: self.attempts,
            starts: self.starts,
            lapsed: Vec::new(),
            has_begun: holdings.has_begun(self.id),
        }
    }

    /// Returns the message of its URL, which is worth fetching until `deadline`.
    pub(crate) fn message(
        self,
        crawl: CrawlRef,
        deadline: Option<UnixMs>,
    ) -> std::result::Result<Message, Unreadable> {
        let work = self.work()?;
        let hop = self.hop.as_deref().map(|target| Hop::of_target(target, self.hops)).transpose();
        let hop = hop.map_err(|_| self.unreadable("hop", self.hop.as_deref().unwrap_or_default()))?;
        Ok(Message {
            work,
            crawl,
            lane: self.lane,
            depth: self.depth,
            deadline,
            until: self.due,
            wake: self.due,
            slot: self.slot,
            turn: self.turn.map(|turn| (turn, self.looks)),
            since: self.since,
            referrer: self.key_in("referrer", self.referrer.as_deref())?,
            hop,
            refusals: self.refusals,
            lapses: self.lapses,
            left: 0,
            is_ours: true,
            trace: None,
        })
    }

    fn work(&self) -> std::result::Result<Work, Unreadable> {
        let key = Key::recorded(&self.url).map_err(|_| self.unreadable("url", &self.url))?;
        let payload = self.payload.as_deref().unwrap_or_default();
        Work::stored(key, payload).ok_or_else(|| self.unreadable("payload", payload))
    }

    fn key_in(&self, field: &str, held: Option<&str>) -> std::result::Result<Option<Key>, Unreadable> {
        held.map(|text| text.parse().map_err(|_| self.unreadable(field, text))).transpose()
    }

    fn unreadable(&self, field: &str, held: &str) -> Unreadable {
        let error = unreadable("record", &self.url, field, held).into();
        Unreadable { id: self.id, crawl: self.crawl, url: self.url.clone(), error }
    }

    /// Returns it if its URL is seen with this record's row. Otherwise trawl did not write one of the two, and the
    /// end of the URL could not be stored.
    pub(crate) fn if_seen(
        self,
        db: &Connection,
        seen: &mut Seen,
        crawl: &CrawlRef,
    ) -> Result<std::result::Result<Self, Unreadable>> {
        match seen.find(db, &Address::new(crawl, &self.url))? {
            Some(id) if id == self.id => Ok(Ok(self)),
            other => {
                let held = other.map_or_else(String::new, |id| id.to_string());
                let error = unreadable("the URL seen as", &self.url, "record", &held).into();
                Ok(Err(Unreadable { id: self.id, crawl: self.crawl, url: self.url, error }))
            }
        }
    }
}

//! The table `failed`: the failed and expired URLs and tasks of each crawl, for people to inspect and to replay.
//!
//! It also has the texts of sources that were no URLs, as if they had ended as `invalid`.

use rusqlite::{Connection, Row, params};
use trawl_common::frontier::Key;
use trawl_common::frontier::dead_letter::{DeadLetter, DeadLetterEntry};
use trawl_common::frontier::outcome::Terminal;
use trawl_common::ports::{FailedPage, Finish, MAX_INVALID};

use crate::embedded::crawls;
use crate::embedded::crawls::stats_delta;
use crate::embedded::records::payloads;
use crate::embedded::store::error::{Fault, Result, unless_corrupt};
use crate::embedded::store::fields::Fields;
use crate::notes;

/// Maximum number of entries of a page.
const PAGE_SIZE: usize = 500;

/// Adds a URL whose terminal state is a failure to its crawl's list.
pub(crate) fn add(db: &Connection, crawl: i64, finish: &Finish) -> Result<()> {
    let Some(note) = &finish.note else { return Ok(()) };
    let note = serde_json::to_string(note).map_err(Fault::corrupt)?;
    db.prepare_cached("INSERT OR REPLACE INTO failed (crawl, url, terminal, note) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![crawl, finish.claim.key.as_str(), finish.terminal.as_str(), note])?;
    Ok(())
}

/// The `terminal` of a text that is no URL.
const INVALID: &str = "invalid";

/// Adds texts that are no URLs to their crawls' lists, and counts them.
pub(crate) fn refuse(db: &Connection, dead_letters: &[DeadLetter]) -> Result<()> {
    for dead_letter in dead_letters {
        if let Some(crawl) = crawls::find(db, &dead_letter.crawl)? {
            add_invalid(db, crawl.key, &dead_letter.url, &dead_letter.note())?;
            stats_delta::invalid(db, crawl.key)?;
        }
    }
    Ok(())
}

/// Adds a text that is no URL to its crawl's list, if there is room.
pub(crate) fn add_invalid(db: &Connection, crawl: i64, text: &str, note: &DeadLetterEntry) -> Result<()> {
    let note = serde_json::to_string(note).map_err(Fault::corrupt)?;
    db.prepare_cached(
        "INSERT OR REPLACE INTO failed (crawl, url, terminal, note) SELECT ?1, ?2, ?3, ?4
         WHERE (SELECT count(*) FROM failed WHERE crawl = ?1 AND terminal = ?3) < ?5",
    )?
    .execute(params![crawl, text, INVALID, note, MAX_INVALID as i64])?;
    Ok(())
}

/// Returns the texts of a crawl that are no URLs.
pub(crate) fn invalid(db: &Connection, crawl: i64) -> Result<Vec<(String, DeadLetterEntry)>> {
    let mut select = db.prepare_cached("SELECT url, note FROM failed WHERE crawl = ?1 AND terminal = ?2")?;
    let texts = select.query_map(params![crawl, INVALID], |row| Ok((row.get(0)?, note(row, 1)?)))?;
    Ok(texts.collect::<rusqlite::Result<_>>()?)
}

/// Removes a text that is no URL from the list. Returns whether it was in it.
pub(crate) fn remove_invalid(db: &Connection, crawl: i64, text: &str) -> Result<bool> {
    let mut remove =
        db.prepare_cached("DELETE FROM failed WHERE crawl = ?1 AND url = ?2 AND terminal = ?3")?;
    Ok(remove.execute(params![crawl, text, INVALID])? > 0)
}

/// Returns one entry: the final state of the URL or the task, and the reason.
pub(crate) fn find(db: &Connection, crawl: i64, key: &Key) -> Result<Option<(Terminal, DeadLetterEntry)>> {
    let mut find = db.prepare_cached(
        "SELECT url, terminal, note FROM failed WHERE crawl = ?1 AND url = ?2 AND terminal <> 'invalid'",
    )?;
    let mut rows = find.query(params![crawl, key.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some((terminal(row)?, note(row, 2)?)))
}

/// Removes a URL or a task from the list, with its payload. Returns whether it was in it.
pub(crate) fn remove(db: &Connection, crawl: i64, key: &Key) -> Result<bool> {
    payloads::remove_dead(db, crawl, key)?;
    let mut remove = db.prepare_cached("DELETE FROM failed WHERE crawl = ?1 AND url = ?2")?;
    Ok(remove.execute(params![crawl, key.as_str()])? > 0)
}

/// Returns the entries after `cursor`, which is the last row of the previous page.
pub(crate) fn page(db: &Connection, crawl: i64, cursor: u64) -> Result<FailedPage> {
    // The plus keeps SQLite from using the index by URL, in whose order each page would have to be sorted.
    let mut select = db.prepare_cached(
        "SELECT entry, url, note FROM failed WHERE entry > ?1 AND +crawl = ?2 AND terminal <> 'invalid' ORDER BY entry LIMIT ?3",
    )?;
    let after = i64::try_from(cursor).unwrap_or(i64::MAX);
    let mut rows = select.query(params![after, crawl, PAGE_SIZE as i64])?;
    let mut page = FailedPage::default();
    let (mut count, mut last) = (0, 0);
    while let Some(row) = rows.next()? {
        (count, last) = (count + 1, row.get::<_, i64>("entry")?);
        let fields = fields_of(row);
        match Key::recorded(&fields.text::<String>("url")?) {
            Ok(key) => page.failed.push((key, note(row, 2)?)),
            Err(_) => page.failed.extend(unless_corrupt(Err(fields.unreadable("url")))?),
        }
    }
    page.next = (count == PAGE_SIZE).then_some(last.cast_unsigned());
    Ok(page)
}

/// Returns the number of entries, including texts that are no URLs.
pub(crate) fn count(db: &Connection, crawl: i64) -> Result<u64> {
    let mut count = db.prepare_cached("SELECT count(*) FROM failed WHERE crawl = ?1")?;
    Ok(count.query_one(params![crawl], |row| row.get::<_, i64>(0))?.cast_unsigned())
}

fn fields_of<'a, 'stmt>(row: &'a Row<'stmt>) -> Fields<'a, 'stmt> {
    Fields::new(row, "dead letter", "url")
}

fn note(row: &Row<'_>, column: usize) -> rusqlite::Result<DeadLetterEntry> {
    Ok(notes::stored(row.get_ref(column)?.as_bytes()?))
}

fn terminal(row: &Row<'_>) -> Result<Terminal> {
    let name: String = row.get("terminal")?;
    let known = Terminal::ALL.into_iter().find(|terminal| terminal.as_str() == name);
    known.ok_or_else(|| fields_of(row).unreadable("terminal"))
}

//! Records which sources of a crawl were read to their end: rows of the table `crawl_reasons`, one for each set of
//! sources, 1 if it was left unread, and 0 once a session has read it. While a session reads, a row of its own says so,
//! because its process may be killed.

use rusqlite::{Connection, params};
use trawl_common::ports::SourcesRead;

use crate::embedded::crawls::stats_delta::add_reason;
use crate::embedded::store::error::Result;

/// Prefix of the names of these rows.
pub(crate) const UNREAD: &str = "unread ";

/// The row of sources that are not known.
const UNNAMED: &str = "unread -";

fn name(sources: Option<u64>) -> String {
    sources.map_or_else(|| UNNAMED.to_owned(), |sources| format!("{UNREAD}{sources:016x}"))
}

/// Prefix of the names of rows for sources that a session is reading. Their count is 0, so that no program shows them.
const READING: &str = "reading ";

fn reading(sources: u64) -> String {
    format!("{READING}{sources:016x}")
}

/// Records that a session has begun to read these sources.
pub(crate) fn begin(db: &Connection, crawl: i64, sources: u64) -> Result<()> {
    db.prepare_cached("INSERT OR IGNORE INTO crawl_reasons (crawl, reason, count) VALUES (?1, ?2, 0)")?
        .execute(params![crawl, reading(sources)])?;
    Ok(())
}

/// Records that the session which was reading these sources has ended.
pub(crate) fn end(db: &Connection, crawl: i64, sources: Option<u64>) -> Result<()> {
    if let Some(sources) = sources {
        db.prepare_cached("DELETE FROM crawl_reasons WHERE crawl = ?1 AND reason = ?2")?
            .execute(params![crawl, reading(sources)])?;
    }
    Ok(())
}

/// Records that all sources were left unread that an earlier process was reading when it ended.
pub(crate) fn take_over(db: &Connection) -> Result<()> {
    db.execute(
        "UPDATE OR IGNORE crawl_reasons SET reason = ?1 || substr(reason, length(?2) + 1), count = 1
         WHERE reason LIKE ?2 || '%' AND crawl IN (SELECT key FROM crawls WHERE ended IS NULL)",
        params![UNREAD, READING],
    )?;
    db.execute("DELETE FROM crawl_reasons WHERE reason LIKE ?1 || '%'", params![READING])?;
    Ok(())
}

/// Records the result of reading sources. A session that has read its sources to their end also settles unknown ones.
pub(crate) fn note_read(db: &Connection, crawl: i64, sources: Option<u64>, read: &SourcesRead) -> Result<()> {
    if read.incomplete {
        leave_unread(db, crawl, sources)?;
    } else if !read.is_submission {
        db.prepare_cached("DELETE FROM crawl_reasons WHERE crawl = ?1 AND reason = ?2")?
            .execute(params![crawl, UNNAMED])?;
        db.prepare_cached("INSERT OR REPLACE INTO crawl_reasons (crawl, reason, count) VALUES (?1, ?2, 0)")?
            .execute(params![crawl, name(sources)])?;
    }
    for (reason, number) in read.reasons() {
        add_reason(db, crawl, reason, number as i64)?;
    }
    Ok(())
}

/// Records that sources were left unread, unless a session has read them to their end.
pub(crate) fn leave_unread(db: &Connection, crawl: i64, sources: Option<u64>) -> Result<()> {
    db.prepare_cached("INSERT OR IGNORE INTO crawl_reasons (crawl, reason, count) VALUES (?1, ?2, 1)")?
        .execute(params![crawl, name(sources)])?;
    Ok(())
}

/// Whether any session has read or left sources of a crawl.
pub(crate) fn are_known(db: &Connection, crawl: i64) -> Result<bool> {
    let mut select =
        db.prepare_cached("SELECT 1 FROM crawl_reasons WHERE crawl = ?1 AND reason LIKE 'unread %'")?;
    Ok(select.exists([crawl])?)
}

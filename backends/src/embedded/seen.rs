//! The tables `seen` and `fresh`: every URL that was admitted, and the row of its record. The table `gone`:
//! the rows of those that a later crawl may find again.
//!
//! The keys of `seen` are hashes, so each insertion changes a page of its own: of a million URLs, a batch
//! of 500 would rewrite 500 pages. So new keys are appended to `fresh`, which is in memory too, and go
//! into `seen` many at a time, in its order.
//!
//! A URL that expired or was cancelled is forgotten when its crawl is over, and not before: a late copy of its
//! message would else revive it.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};
use trawl_common::url::Fingerprint;

use super::error::Result;

/// How many keys wait for their place in the index: a few megabytes, and a pause of some tenths of a
/// second when they go there.
const FRESH: usize = 65_536;

/// Which URLs have been seen.
#[derive(Default)]
pub(super) struct Seen {
    /// The table `fresh`; read when it is first asked for.
    fresh: Option<HashMap<Fingerprint, i64>>,
}

impl Seen {
    /// The row that the record of `url` has, or had; `None` if it was never seen, or is forgotten.
    pub(super) fn find(&mut self, db: &Connection, url: Fingerprint) -> Result<Option<i64>> {
        if let Some(record) = self.fresh(db)?.get(&url) {
            return Ok(Some(*record));
        }
        let mut find = db.prepare_cached("SELECT record FROM seen WHERE url = ?1")?;
        Ok(find.query_row([url.0], |row| row.get(0)).optional()?)
    }

    /// Notes that `url`, unseen so far, has the record in row `record`.
    pub(super) fn add(&mut self, db: &Connection, url: Fingerprint, record: i64) -> Result<()> {
        db.prepare_cached("INSERT INTO fresh (record, url) VALUES (?1, ?2)")?
            .execute(params![record, url.0])?;
        let fresh = self.fresh(db)?;
        fresh.insert(url, record);
        if fresh.len() >= FRESH {
            db.execute_batch(
                "INSERT INTO seen (url, record) SELECT url, record FROM fresh ORDER BY url;
                 DELETE FROM fresh;",
            )?;
            fresh.clear();
        }
        Ok(())
    }

    /// Notes that `url`, whose record was in row `old`, was never seen.
    pub(super) fn remove(&mut self, db: &Connection, url: Fingerprint, old: i64) -> Result<()> {
        if self.fresh(db)?.remove(&url).is_some() {
            db.prepare_cached("DELETE FROM fresh WHERE record = ?1")?.execute([old])?;
        } else {
            db.prepare_cached("DELETE FROM seen WHERE url = ?1")?.execute([url.0])?;
        }
        Ok(())
    }

    /// Forgets the URLs of a crawl that is over which [`leave`] or [`leave_all`] named, unless they have another
    /// record since. It reads the index from end to end, which takes a second for some millions.
    pub(super) fn forget(&mut self, db: &Connection, crawl: i64) -> Result<()> {
        let mut gone = db.prepare_cached("SELECT 1 FROM gone WHERE crawl = ?1 LIMIT 1")?;
        if gone.exists([crawl])? {
            for table in ["fresh", "seen"] {
                let gone = "SELECT record FROM gone WHERE crawl = ?1";
                db.execute(&format!("DELETE FROM {table} WHERE record IN ({gone})"), [crawl])?;
            }
            db.execute("DELETE FROM gone WHERE crawl = ?1", [crawl])?;
            self.fresh = None;
        }
        Ok(())
    }

    fn fresh(&mut self, db: &Connection) -> Result<&mut HashMap<Fingerprint, i64>> {
        if self.fresh.is_none() {
            let mut all = db.prepare_cached("SELECT url, record FROM fresh")?;
            let entry = |row: &rusqlite::Row<'_>| Ok((Fingerprint(row.get(0)?), row.get(1)?));
            self.fresh = Some(all.query_map([], entry)?.collect::<rusqlite::Result<_>>()?);
        }
        Ok(self.fresh.get_or_insert_default())
    }
}

/// Has the URL whose record was in row `record` forgotten once its crawl is over.
pub(super) fn leave(db: &Connection, crawl: i64, record: i64) -> Result<()> {
    db.prepare_cached("INSERT INTO gone (record, crawl) VALUES (?1, ?2)")?.execute([record, crawl])?;
    Ok(())
}

/// Has all URLs forgotten that still have a record in the crawl, once it is over.
pub(super) fn leave_all(db: &Connection, crawl: i64) -> Result<()> {
    db.execute("INSERT INTO gone (record, crawl) SELECT id, crawl FROM records WHERE crawl = ?1", [crawl])?;
    Ok(())
}

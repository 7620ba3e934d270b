//! The tables `seen` and `fresh`: every URL ever admitted, and the row of its record.
//!
//! The keys of `seen` are hashes, so each insertion changes a page of its own: of a million URLs, a batch
//! of 500 would rewrite 500 pages. So new keys are appended to `fresh`, which is in memory too, and go
//! into `seen` many at a time, in its order.

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
    /// The row that the record of `url` has, or had; `None` if it was never seen.
    pub(super) fn find(&mut self, db: &Connection, url: Fingerprint) -> Result<Option<i64>> {
        if let Some(record) = self.fresh(db)?.get(&url) {
            return Ok(Some(*record));
        }
        let mut find = db.prepare_cached("SELECT record FROM seen WHERE url = ?1")?;
        Ok(find.query_row([url.0], |row| row.get(0)).optional()?)
    }

    /// Notes that `url`, unseen so far, has the record in row `record`.
    pub(super) fn add(&mut self, db: &Connection, url: Fingerprint, record: i64) -> Result<()> {
        db.prepare_cached("INSERT INTO fresh (url, record) VALUES (?1, ?2)")?
            .execute(params![url.0, record])?;
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

    fn fresh(&mut self, db: &Connection) -> Result<&mut HashMap<Fingerprint, i64>> {
        if self.fresh.is_none() {
            let mut all = db.prepare_cached("SELECT url, record FROM fresh")?;
            let entry = |row: &rusqlite::Row<'_>| Ok((Fingerprint(row.get(0)?), row.get(1)?));
            self.fresh = Some(all.query_map([], entry)?.collect::<rusqlite::Result<_>>()?);
        }
        Ok(self.fresh.get_or_insert_default())
    }
}

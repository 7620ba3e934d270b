//! The tables `seen` and `fresh`: every admitted URL, with the row of its record. The table `gone`: the rows of
//! URLs that a later crawl may find again.
//!
//! The keys of `seen` are hashes, so each insertion changes another page: with a million URLs, a batch of 500
//! would rewrite 500 pages. So new keys are appended to `fresh`, which is also in memory, and are moved to `seen`
//! many at a time, in its order.
//!
//! A URL that expired or was cancelled is forgotten when its crawl is over, not before: otherwise a late copy of
//! its message would revive it.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};
use tracing::error;
use trawl_common::names::CrawlRef;
use trawl_common::web::url::Fingerprint;

use crate::embedded::records::address::Address;
use crate::embedded::store::error::Result;

/// Number of keys that are collected before they are moved to the index: a few megabytes, and a pause of some
/// tenths of a second.
const MAX_UNINDEXED: usize = 65_536;

/// The seen URLs.
#[derive(Default)]
pub(super) struct Seen {
    /// The table `fresh`, read on first use.
    fresh: Option<HashMap<Fingerprint, i64>>,
    /// The crawls that fetch again what was crawled before, by id and spider: few, read on first use.
    recrawls: Option<Vec<(String, String)>>,
}

impl Seen {
    /// Returns the row that the record of a URL has, or had; `None` if it was never seen, or is forgotten.
    pub(super) fn find(&mut self, db: &Connection, address: &Address) -> Result<Option<i64>> {
        let key = self.key(db, address)?;
        self.find_key(db, key)
    }

    fn find_key(&mut self, db: &Connection, url: Fingerprint) -> Result<Option<i64>> {
        if let Some(record) = self.fresh(db)?.get(&url) {
            return Ok(Some(*record));
        }
        let mut find = db.prepare_cached("SELECT record FROM seen WHERE url = ?1")?;
        Ok(find.query_row([url.0], |row| row.get(0)).optional()?)
    }

    /// Notes that a URL, unseen so far, has the record in row `record` of the crawl in row `crawl`. URLs of a
    /// crawl that dedups on its own are forgotten when it is over.
    pub(super) fn add(&mut self, db: &Connection, address: &Address, crawl: i64, record: i64) -> Result<()> {
        let key = self.key(db, address)?;
        if key != address.url {
            leave(db, crawl, record)?;
        }
        self.add_key(db, key, record)
    }

    /// Notes that a URL's spider has seen it, unless noted before: its crawl, which had the record in row
    /// `record`, dedups on its own. The row is stored negated, so that it is not forgotten with the URLs of that
    /// crawl.
    pub(super) fn add_for_spider(&mut self, db: &Connection, address: &Address, record: i64) -> Result<()> {
        if self.key(db, address)? == address.url {
            return Ok(());
        }
        match self.find_key(db, address.url)? {
            Some(_) => Ok(()),
            None => self.add_key(db, address.url, -record),
        }
    }

    /// Makes the crawls that dedup on their own be read again.
    pub(super) fn look_again(&mut self) {
        self.recrawls = None;
    }

    /// Returns the key by which a URL is seen: by its spider, or by its crawl alone.
    fn key(&mut self, db: &Connection, address: &Address) -> Result<Fingerprint> {
        if self.recrawls.is_none() {
            let mut select = db
                .prepare_cached("SELECT id, spider FROM crawls WHERE recrawl <> 'never' AND ended IS NULL")?;
            let crawl = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            self.recrawls = Some(select.query_map([], crawl)?.collect::<rusqlite::Result<_>>()?);
        }
        let recrawls = self.recrawls.get_or_insert_default();
        let CrawlRef { id, spider } = &address.crawl;
        let is_own = recrawls.iter().any(|(other, of)| other == id.as_str() && of == spider.as_str());
        Ok(if is_own { Fingerprint::from_text(&format!("{id} {}", address.url)) } else { address.url })
    }

    fn add_key(&mut self, db: &Connection, url: Fingerprint, record: i64) -> Result<()> {
        // An entry with this row already cannot be trawl's: no two records have the same row.
        db.prepare_cached("INSERT OR REPLACE INTO fresh (record, url) VALUES (?1, ?2)")?
            .execute(params![record, url.0])?;
        let fresh = self.fresh(db)?;
        fresh.insert(url, record);
        if fresh.len() >= MAX_UNINDEXED {
            db.execute_batch(
                "INSERT OR REPLACE INTO seen (url, record) SELECT url, record FROM fresh ORDER BY url;
                 DELETE FROM fresh;",
            )?;
            fresh.clear();
        }
        Ok(())
    }

    /// Returns the row that the record of a URL has, or had, if its spider has seen it in any crawl. A negated row
    /// belongs to a crawl that dedups on its own.
    pub(super) fn find_of_spider(&mut self, db: &Connection, address: &Address) -> Result<Option<i64>> {
        self.find_key(db, address.url)
    }

    /// Makes the spider forget a URL whose record was in row `old`.
    pub(super) fn remove_of_spider(&mut self, db: &Connection, address: &Address, old: i64) -> Result<()> {
        self.remove_key(db, address.url, old)
    }

    /// Marks a URL, whose record was in row `old`, as never seen.
    pub(super) fn remove(&mut self, db: &Connection, address: &Address, old: i64) -> Result<()> {
        let url = self.key(db, address)?;
        self.remove_key(db, url, old)
    }

    fn remove_key(&mut self, db: &Connection, url: Fingerprint, old: i64) -> Result<()> {
        if self.fresh(db)?.remove(&url).is_some() {
            db.prepare_cached("DELETE FROM fresh WHERE record = ?1")?.execute([old])?;
        } else {
            db.prepare_cached("DELETE FROM seen WHERE url = ?1")?.execute([url.0])?;
        }
        Ok(())
    }

    /// Forgets the URLs of a finished crawl that [`leave`] or [`leave_all`] marked, unless they have another
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
            self.recrawls = None;
        }
        Ok(())
    }

    fn fresh(&mut self, db: &Connection) -> Result<&mut HashMap<Fingerprint, i64>> {
        if self.fresh.is_none() {
            let mut all = db.prepare_cached("SELECT url, record FROM fresh")?;
            let entry = |row: &rusqlite::Row<'_>| Ok((row.get(1)?, row.get(0).map(Fingerprint)));
            let mut fresh = HashMap::new();
            for entry in all.query_map([], entry)? {
                match entry? {
                    (record, Ok(url)) => drop(fresh.insert(url, record)),
                    (record, Err(error)) => {
                        error!(record, %error, "the field url of this row of fresh cannot be read: what has it counts as never seen");
                    }
                }
            }
            self.fresh = Some(fresh);
        }
        Ok(self.fresh.get_or_insert_default())
    }
}

/// Marks the URL whose record was in row `record` to be forgotten once its crawl is over.
pub(super) fn leave(db: &Connection, crawl: i64, record: i64) -> Result<()> {
    db.prepare_cached("INSERT OR IGNORE INTO gone (record, crawl) VALUES (?1, ?2)")?
        .execute([record, crawl])?;
    Ok(())
}

/// Marks all URLs that still have a record in the crawl to be forgotten once it is over.
pub(super) fn leave_all(db: &Connection, crawl: i64) -> Result<()> {
    db.execute(
        "INSERT OR IGNORE INTO gone (record, crawl) SELECT id, crawl FROM records WHERE crawl = ?1",
        [crawl],
    )?;
    Ok(())
}

//! The table `crawls`: the terms, the status and the counters of each crawl.

pub(crate) mod beats;
pub(crate) mod commands;
pub(crate) mod control;
pub(crate) mod crawl_stats;
pub(crate) mod failures;
pub(crate) mod forgetting;
pub(crate) mod lanes;
pub(crate) mod places;
pub(crate) mod quality;
pub(crate) mod stats;
pub(crate) mod stats_delta;
pub(crate) mod tasks;

use std::num::NonZeroU64;
use std::rc::Rc;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, params};
use trawl_common::frontier::crawl::{Counts, CrawlState};
use trawl_common::frontier::judging::Judging;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{self, Error, ErrorKind, Terms};
use trawl_common::spider::SpiderText;
use trawl_common::time::UnixMs;

use crate::embedded::store::error::Result;
use crate::embedded::store::fields::{Fields, sql_ms};
use crate::embedded::store::{Memory, Store};

/// The columns of a crawl's row that transitions need.
#[derive(Clone)]
pub(crate) struct Crawl {
    /// The number of its row.
    pub(crate) key: i64,
    /// Its id and spider.
    pub(crate) crawl: CrawlRef,
    /// The time when it started.
    pub(crate) started: UnixMs,
    /// Its status.
    pub(crate) status: CrawlState,
    /// Its terms.
    pub(crate) terms: Terms,
    /// Number of pages that it has done.
    pub(crate) done: u64,
    /// Total length of its pauses so far, without the current one.
    pub(crate) idle: Duration,
}

impl Crawl {
    /// Returns the number of pages that it may still do; `None` if there is no limit.
    pub(crate) fn pages_left(&self) -> Option<u64> {
        self.terms.max_pages.map(|most| most.get().saturating_sub(self.done))
    }
}

/// Inserts a new crawl.
fn begin(db: &Connection, crawl: &CrawlRef, terms: &Terms) -> Result<Crawl> {
    let (status, started) = (CrawlState::Running, UnixMs::now());
    db.prepare_cached(
        "INSERT INTO crawls (id, spider, status, started, recrawl, replays, touched) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?4)",
    )?
    .execute(params![
        crawl.id.as_str(),
        crawl.spider.as_str(),
        status.as_str(),
        sql_ms(started),
        terms.recrawl.to_string(),
        terms.replays.map(|period| period.to_string())
    ])?;
    let key = db.last_insert_rowid();
    Ok(Crawl { key, crawl: crawl.clone(), started, status, terms: *terms, done: 0, idle: Duration::ZERO })
}

/// Returns the crawl's row, inserted if there is none, with the limits of `terms`.
pub(crate) fn ensure(db: &Connection, crawl: &CrawlRef, terms: &Terms) -> Result<Crawl> {
    let known = match find(db, crawl)? {
        Some(known) => known,
        None => begin(db, crawl, terms)?,
    };
    let limit = |limit: Option<NonZeroU64>| limit.map(|limit| i64::try_from(limit.get()).unwrap_or(i64::MAX));
    db.prepare_cached("UPDATE crawls SET max_pages = ?2, max_per_host = ?3, file = ?4 WHERE key = ?1")?
        .execute(params![
            known.key,
            limit(terms.max_pages),
            limit(terms.max_per_host),
            terms.file.map(|file| file.to_string())
        ])?;
    let Terms { recrawl, replays, .. } = known.terms;
    let terms = Terms { recrawl, replays, ..*terms };
    Ok(Crawl { terms, ..known })
}

/// The columns that [`row`] reads.
const ROW: &str =
    "key, id, spider, started, status, idle, recrawl, max_pages, max_per_host, file, replays, done";

/// Returns the crawl's row, if there is one.
pub(crate) fn find(db: &Connection, CrawlRef { id, spider }: &CrawlRef) -> Result<Option<Crawl>> {
    let mut find = db.prepare_cached(&format!("SELECT {ROW} FROM crawls WHERE id = ?1 AND spider = ?2"))?;
    find.query_row([id.as_str(), spider.as_str()], |found| Ok(row(found))).optional()?.transpose()
}

/// Runs `work` on a crawl, as [`Store::call`] does. Returns the default if there is no such crawl.
pub(crate) async fn run_on<T, W>(store: &Store, crawl: &CrawlRef, work: W) -> ports::Result<T>
where
    T: Default + Send + 'static,
    W: FnOnce(&Connection, &mut Memory, &Crawl) -> Result<T> + Send + 'static,
{
    let crawl = crawl.clone();
    let work = move |db: &Connection, memory: &mut Memory| match find(db, &crawl)? {
        Some(known) => work(db, memory, &known),
        None => Ok(T::default()),
    };
    store.call(work).await
}

/// Returns the crawl in this row.
pub(crate) fn at(db: &Connection, key: i64) -> Result<Crawl> {
    let mut find = db.prepare_cached(&format!("SELECT {ROW} FROM crawls WHERE key = ?1"))?;
    find.query_row([key], |found| Ok(row(found)))?
}

fn row(row: &Row<'_>) -> Result<Crawl> {
    let fields = Fields::new(row, "crawl", "id");
    let terms = Terms {
        recrawl: fields.text("recrawl")?,
        max_pages: fields.limit("max_pages")?,
        max_per_host: fields.limit("max_per_host")?,
        file: fields.optional_text("file")?,
        replays: fields.optional_text("replays")?,
    };
    Ok(Crawl {
        key: row.get("key")?,
        crawl: CrawlRef { id: fields.text("id")?, spider: fields.text("spider")? },
        started: fields.instant("started")?,
        status: fields.text("status")?,
        terms,
        done: fields.number("done")?,
        idle: Duration::from_millis(fields.number("idle")?),
    })
}

/// The crawls that a call is about, each read once. Valid as long as the call changes none of their rows.
#[derive(Default)]
pub(crate) struct Crawls(Vec<Rc<Crawl>>);

impl Crawls {
    /// Like the function [`find`], cached.
    pub(crate) fn find(&mut self, db: &Connection, crawl: &CrawlRef) -> Result<Option<Rc<Crawl>>> {
        if let Some(known) = self.0.iter().find(|known| known.crawl == *crawl) {
            return Ok(Some(Rc::clone(known)));
        }
        Ok(find(db, crawl)?.map(|row| self.add(row)))
    }

    /// Like the function [`at`], cached.
    pub(crate) fn at(&mut self, db: &Connection, key: i64) -> Result<Rc<Crawl>> {
        match self.0.iter().find(|known| known.key == key) {
            Some(known) => Ok(Rc::clone(known)),
            None => Ok(self.add(at(db, key)?)),
        }
    }

    fn add(&mut self, row: Crawl) -> Rc<Crawl> {
        let row = Rc::new(row);
        self.0.push(Rc::clone(&row));
        row
    }
}

/// Returns the crawl's row; fails with `Stale` if there is none, or if it is over.
pub(crate) fn going(db: &Connection, crawl: &CrawlRef) -> Result<Crawl> {
    let going = find(db, crawl)?.filter(|known| !known.status.is_over());
    Ok(going.ok_or_else(|| over(crawl))?)
}

/// Returns the error for an action on a crawl that is over or unknown.
pub(crate) fn over(crawl: &CrawlRef) -> Error {
    Error::new(ErrorKind::Stale, format_args!("crawl {} is over, or was never opened", crawl.id))
}

/// Notes that sources are being read.
pub(crate) fn begin_discovery(db: &Connection, key: i64) -> Result<()> {
    db.prepare_cached("UPDATE crawls SET discovered = FALSE WHERE key = ?1")?.execute([key])?;
    Ok(())
}

/// Notes that every source has been read.
pub(crate) fn end_discovery(db: &Connection, key: i64) -> Result<()> {
    db.prepare_cached("UPDATE crawls SET discovered = TRUE WHERE key = ?1")?.execute([key])?;
    Ok(())
}

/// Pauses a running crawl.
pub(crate) fn pause(db: &Connection, key: i64) -> Result<()> {
    db.prepare_cached("UPDATE crawls SET status = ?2, paused = ?3 WHERE key = ?1")?.execute(params![
        key,
        CrawlState::Paused.as_str(),
        sql_ms(UnixMs::now())
    ])?;
    Ok(())
}

/// Resumes a paused crawl, and adds the length of the pause. A clock that was set back adds nothing.
pub(crate) fn resume(db: &Connection, key: i64) -> Result<()> {
    db.prepare_cached(
        "UPDATE crawls SET status = ?2, idle = idle + max(0, ?3 - paused), paused = NULL WHERE key = ?1",
    )?
    .execute(params![key, CrawlState::Running.as_str(), sql_ms(UnixMs::now())])?;
    Ok(())
}

/// Marks a crawl as cancelled.
pub(crate) fn cancel(db: &Connection, key: i64) -> Result<()> {
    db.prepare_cached("UPDATE crawls SET status = ?2, ended = ?3, paused = NULL WHERE key = ?1")?
        .execute(params![key, CrawlState::Cancelled.as_str(), sql_ms(UnixMs::now())])?;
    Ok(())
}

/// Adds `counts` to the crawl's counters: those rows have just been written or deleted.
pub(crate) fn count(db: &Connection, key: i64, counts: &Counts, bytes: u64, left_out: u64) -> Result<()> {
    let Counts { admitted, done, failed, skipped, expired, cancelled } = *counts;
    db.prepare_cached(
        "UPDATE crawls SET admitted = admitted + ?2, done = done + ?3, failed = failed + ?4,
                           skipped = skipped + ?5, expired = expired + ?6, cancelled = cancelled + ?7,
                           bytes = bytes + ?8, left_out = left_out + ?9, touched = ?10
         WHERE key = ?1",
    )?
    .execute(params![
        key,
        admitted as i64,
        done as i64,
        failed as i64,
        skipped as i64,
        expired as i64,
        cancelled as i64,
        bytes as i64,
        left_out as i64,
        sql_ms(UnixMs::now())
    ])?;
    Ok(())
}

/// Subtracts a URL of the crawl that had reached `terminal`: it has a record again.
pub(crate) fn uncount(db: &Connection, key: i64, terminal: Terminal) -> Result<()> {
    let sql =
        format!("UPDATE crawls SET {terminal} = {terminal} - 1 WHERE key = ?1", terminal = terminal.as_str());
    db.prepare_cached(&sql)?.execute([key])?;
    Ok(())
}

/// Finishes the crawl if it is running, discovery has ended and every URL has its terminal state. Ad-hoc crawls
/// ([`CrawlRef::is_adhoc`]) never end. Returns whether this call finished it.
pub(crate) fn finish_if_complete(db: &Connection, key: i64) -> Result<bool> {
    let mut finish = db.prepare_cached(
        "UPDATE crawls SET status = ?2, ended = ?3
         WHERE key = ?1 AND status = ?4 AND discovered AND id <> ?5 AND id <> ?5 || '.' || spider
           AND admitted = done + failed + skipped + expired + cancelled",
    )?;
    let finished = finish.execute(params![
        key,
        CrawlState::Finished.as_str(),
        sql_ms(UnixMs::now()),
        CrawlState::Running.as_str(),
        CrawlRef::adhoc().id.as_str()
    ])?;
    Ok(finished > 0)
}

/// Stores the text of the spider's file for the crawl, unless one is stored already.
pub(crate) fn keep_spider_text(db: &Connection, key: i64, text: &SpiderText) -> Result<()> {
    db.prepare_cached("INSERT OR IGNORE INTO spider_texts (crawl, text) VALUES (?1, ?2)")?
        .execute(params![key, text.as_str()])?;
    Ok(())
}

/// Stores how the result of the crawl is judged.
pub(crate) fn keep_judging(db: &Connection, key: i64, judging: &Judging) -> Result<()> {
    db.prepare_cached("UPDATE crawls SET judging = ?2 WHERE key = ?1")?
        .execute(params![key, judging.to_string()])?;
    Ok(())
}

/// Returns the stored text of the spider's file.
pub(crate) fn spider_text(db: &Connection, CrawlRef { id, spider }: &CrawlRef) -> Result<Option<SpiderText>> {
    let mut select = db.prepare_cached(
        "SELECT text FROM spider_texts JOIN crawls ON crawl = key WHERE id = ?1 AND spider = ?2",
    )?;
    let text = select.query_row([id.as_str(), spider.as_str()], |row| row.get::<_, String>(0)).optional()?;
    Ok(text.map(SpiderText::from))
}

/// Notes that a process is working on the unfinished crawls.
pub(crate) fn touch(db: &Connection) -> Result<()> {
    db.prepare_cached("UPDATE crawls SET touched = ?1 WHERE ended IS NULL")?
        .execute([sql_ms(UnixMs::now())])?;
    Ok(())
}

/// Returns the sources that a crawl was started with, if they were noted.
pub(crate) fn sources(db: &Connection, crawl: &CrawlRef) -> Result<Option<String>> {
    let mut select = db.prepare_cached("SELECT named FROM sources WHERE crawl = ?1")?;
    Ok(select.query_row([crawl.id.as_str()], |row| row.get(0)).optional()?)
}

/// Notes the sources that a crawl is started with.
pub(crate) fn note_sources(db: &Connection, crawl: &CrawlRef, named: &str) -> Result<()> {
    db.prepare_cached("INSERT OR REPLACE INTO sources (crawl, named) VALUES (?1, ?2)")?
        .execute([crawl.id.as_str(), named])?;
    Ok(())
}

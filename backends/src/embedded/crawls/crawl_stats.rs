//! The stats of crawls, as people see them.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row};
use trawl_common::frontier::crawl::{Counts, CrawlStats, HostStats};
use trawl_common::frontier::judging::Judging;
use trawl_common::frontier::{Period, Recrawl};
use trawl_common::names::{CrawlId, CrawlRef};
use trawl_common::ports::Backlog;
use trawl_common::time::UnixMs;

use crate::embedded::admission::sources::UNREAD;
use crate::embedded::store::error::{Result, unless_corrupt};
use crate::embedded::store::fields::Fields;

/// Approximate size of a record in bytes, without its URL and its referrer.
const RECORD_OVERHEAD: u64 = 100;

/// The current time of a crawl that is not over.
#[derive(Clone, Copy)]
pub(crate) enum Clock {
    /// The real time: this process crawls.
    Runs,
    /// The time when a process last crawled: possibly another one, and none may be running.
    AsTouched,
}

/// Returns the stats of one crawl.
pub(crate) fn of(db: &Connection, clock: Clock, id: &CrawlId) -> Result<Option<CrawlStats>> {
    let mut select = db.prepare_cached("SELECT * FROM crawls WHERE id = ?1 ORDER BY started DESC LIMIT 1")?;
    select.query_row([id.as_str()], |row| Ok(read(db, clock, row))).optional()?.transpose()
}

/// Returns the stats of every crawl, newest first. One that cannot be read is logged and left out.
pub(crate) fn all(db: &Connection, clock: Clock) -> Result<Vec<CrawlStats>> {
    let mut select = db.prepare_cached("SELECT * FROM crawls ORDER BY started DESC, key DESC")?;
    let all = select.query_and_then([], |row| unless_corrupt(read(db, clock, row)))?;
    all.filter_map(Result::transpose).collect()
}

fn read(db: &Connection, clock: Clock, row: &Row<'_>) -> Result<CrawlStats> {
    let fields = Fields::new(row, "crawl", "id");
    let counts = counts(&fields)?;
    let started = fields.instant("started")?;
    let until = match (fields.optional_instant("ended")?, clock) {
        (Some(ended), _) => ended,
        (None, Clock::Runs) => UnixMs::now(),
        // Older versions did not note it.
        (None, Clock::AsTouched) => fields.optional_instant("touched")?.unwrap_or(started),
    };
    let away = Duration::from_millis(fields.number("away")?);
    let (unread, reasons): (BTreeMap<_, _>, _) =
        reasons(db, row.get("key")?)?.into_iter().partition(|(reason, _)| reason.starts_with(UNREAD));
    let recrawl: Recrawl = fields.text("recrawl")?;
    let replays: Option<Period> = fields.optional_text("replays")?;
    let judging: Judging = fields.optional_text("judging")?.unwrap_or_default();
    let crawl = CrawlRef { id: fields.text("id")?, spider: fields.text("spider")? };
    let stats = CrawlStats {
        incomplete: !unread.is_empty(),
        held: held(db, row.get("key")?)?,
        dedup: recrawl.into(),
        counts,
        pending: counts.admitted.saturating_sub(counts.ended()),
        bytes: fields.number("bytes")?,
        reasons,
        left_out: fields.number("left_out")?,
        judging: if replays.is_some() { judging.of_replay() } else { judging },
        seconds: until.since(started).saturating_sub(away).as_secs_f64(),
        discovered: row.get("discovered")?,
        ..CrawlStats::empty(crawl, fields.text("status")?, started)
    };
    Ok(stats.concluded())
}

/// Returns why a crawl is held.
fn held(db: &Connection, crawl: i64) -> Result<Option<String>> {
    let mut select = db.prepare_cached("SELECT why FROM pauses WHERE crawl = ?1")?;
    Ok(select.query_row([crawl], |row| row.get(0)).optional()?)
}

/// Returns the counters of a row.
pub(crate) fn counts(fields: &Fields<'_, '_>) -> Result<Counts> {
    Ok(Counts {
        admitted: fields.number("admitted")?,
        done: fields.number("done")?,
        failed: fields.number("failed")?,
        skipped: fields.number("skipped")?,
        expired: fields.number("expired")?,
        cancelled: fields.number("cancelled")?,
    })
}

/// Returns the pending records of a crawl. Their size in bytes is estimated from the newest ones.
pub(crate) fn backlog(db: &Connection, clock: Clock, crawl: &CrawlId) -> Result<Backlog> {
    let urls = of(db, clock, crawl)?.map_or(0, |stats| stats.pending);
    let text: f64 = db
        .prepare_cached(
            "SELECT ifnull(avg(length(url) + ifnull(length(referrer), 0) + iif(lane = 'task', ifnull(
                 (SELECT length(payload) FROM tasks WHERE tasks.crawl = newest.crawl AND key = url), 0),
                 iif(substr(url, -41, 9) = '#request:', ifnull(
                 (SELECT length(payload) FROM requests WHERE requests.crawl = newest.crawl AND key = url), 0), 0))), 0)
             FROM (SELECT crawl, url, referrer, lane FROM records ORDER BY id DESC LIMIT 1000) newest",
        )?
        .query_row([], |row| row.get(0))?;
    Ok(Backlog { urls, bytes: urls * (text as u64 + RECORD_OVERHEAD) })
}

/// The number of URLs of a crawl by the reason why they ended.
fn reasons(db: &Connection, crawl: i64) -> Result<BTreeMap<String, u64>> {
    let mut select =
        db.prepare_cached("SELECT reason, count FROM crawl_reasons WHERE crawl = ?1 AND count > 0")?;
    let reason =
        |row: &Row<'_>| Ok((row.get("reason")?, Fields::new(row, "reason", "reason").number("count")?));
    select.query_and_then([crawl], reason)?.collect()
}

/// Returns the stats of a crawl by host, those with the most URLs first.
pub(crate) fn hosts(db: &Connection, crawl: i64, most: usize) -> Result<Vec<HostStats>> {
    let mut select = db.prepare_cached(
        "SELECT host, admitted, done, failed, skipped, expired, cancelled, bytes FROM crawl_hosts
         WHERE crawl = ?1 ORDER BY admitted DESC, host LIMIT ?2",
    )?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let host = |row: &Row<'_>| {
        let fields = Fields::new(row, "host", "host");
        Ok(HostStats { host: row.get("host")?, counts: counts(&fields)?, bytes: fields.number("bytes")? })
    };
    select.query_and_then([crawl, most], host)?.collect()
}

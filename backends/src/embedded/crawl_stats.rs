//! The stats of crawls, as people see them.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row};
use trawl_common::frontier::crawl::{Counts, CrawlStats, HostStats};
use trawl_common::names::CrawlId;
use trawl_common::ports::Backlog;
use trawl_common::time::UnixMs;

use super::error::{Fault, Result};
use super::fields::unix_ms;

/// About so many bytes a record takes beside its URL and its referrer.
const BESIDE_TEXT: u64 = 100;

/// What time it is for a crawl that is not over.
#[derive(Clone, Copy)]
pub(super) enum Clock {
    /// Time goes on: this process crawls.
    Runs,
    /// It is when a process last crawled: that may be another, or none may be at work.
    AsTouched,
}

/// The stats of one crawl.
pub(super) fn of(db: &Connection, clock: Clock, id: &CrawlId) -> Result<Option<CrawlStats>> {
    let mut select = db.prepare_cached("SELECT * FROM crawls WHERE id = ?1 ORDER BY started DESC LIMIT 1")?;
    select.query_row([id.as_str()], |row| Ok(read(db, clock, row))).optional()?.transpose()
}

/// The stats of every crawl, the newest first.
pub(super) fn all(db: &Connection, clock: Clock) -> Result<Vec<CrawlStats>> {
    let mut select = db.prepare_cached("SELECT * FROM crawls ORDER BY started DESC, key DESC")?;
    select.query_map([], |row| Ok(read(db, clock, row)))?.map(|stats| stats?).collect()
}

fn read(db: &Connection, clock: Clock, row: &Row<'_>) -> Result<CrawlStats> {
    let counter = |name: &str| row.get::<_, i64>(name).map(|count| count as u64);
    let counts = Counts {
        admitted: counter("admitted")?,
        done: counter("done")?,
        failed: counter("failed")?,
        skipped: counter("skipped")?,
        expired: counter("expired")?,
        cancelled: counter("cancelled")?,
    };
    let started = unix_ms(row.get("started")?);
    let until = match (row.get::<_, Option<i64>>("ended")?, clock) {
        (Some(ended), _) => unix_ms(ended),
        (None, Clock::Runs) => UnixMs::now(),
        (None, Clock::AsTouched) => row.get::<_, Option<i64>>("touched")?.map_or(started, unix_ms),
    };
    let away = Duration::from_millis(counter("away")?);
    let name = |column: &str| row.get::<_, String>(column);
    Ok(CrawlStats {
        crawl: name("id")?.try_into().map_err(Fault::corrupt)?,
        spider: name("spider")?.try_into().map_err(Fault::corrupt)?,
        status: name("status")?.parse().map_err(Fault::corrupt)?,
        counts,
        pending: counts.admitted.saturating_sub(counts.ended()),
        bytes: counter("bytes")?,
        reasons: reasons(db, row.get("key")?)?,
        left_out: counter("left_out")?,
        seconds: until.since(started).saturating_sub(away).as_secs_f64(),
        discovered: row.get("discovered")?,
        started,
    })
}

/// What waits in a crawl. The newest records tell how many bytes all of them take.
pub(super) fn backlog(db: &Connection, clock: Clock, crawl: &CrawlId) -> Result<Backlog> {
    let urls = of(db, clock, crawl)?.map_or(0, |stats| stats.pending);
    let text: f64 = db
        .prepare_cached(
            "SELECT ifnull(avg(length(url) + ifnull(length(referrer), 0)), 0)
             FROM (SELECT url, referrer FROM records ORDER BY id DESC LIMIT 1000)",
        )?
        .query_row([], |row| row.get(0))?;
    Ok(Backlog { urls, bytes: urls * (text as u64 + BESIDE_TEXT) })
}

/// How many URLs of a crawl ended why.
fn reasons(db: &Connection, crawl: i64) -> Result<BTreeMap<String, u64>> {
    let mut select =
        db.prepare_cached("SELECT reason, count FROM crawl_reasons WHERE crawl = ?1 AND count > 0")?;
    let reason = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64));
    Ok(select.query_map([crawl], reason)?.collect::<rusqlite::Result<_>>()?)
}

/// The stats of a crawl by host, those with the most URLs first.
pub(super) fn hosts(db: &Connection, crawl: i64, most: usize) -> Result<Vec<HostStats>> {
    let mut select = db.prepare_cached(
        "SELECT host, admitted, done, failed, skipped, expired, cancelled, bytes FROM crawl_hosts
         WHERE crawl = ?1 ORDER BY admitted DESC, host LIMIT ?2",
    )?;
    let host = |row: &Row<'_>| {
        let number = |column| row.get::<_, i64>(column).map(|count| count as u64);
        let counts = Counts {
            admitted: number(1)?,
            done: number(2)?,
            failed: number(3)?,
            skipped: number(4)?,
            expired: number(5)?,
            cancelled: number(6)?,
        };
        Ok(HostStats { host: row.get(0)?, counts, bytes: number(7)? })
    };
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    Ok(select.query_map([crawl, most], host)?.collect::<rusqlite::Result<_>>()?)
}

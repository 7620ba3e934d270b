//! Changes to the stats of crawls: counters, the reasons why URLs and tasks ended, and both for URLs by host.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};
use trawl_common::frontier::End;
use trawl_common::frontier::crawl::Counts;
use trawl_common::frontier::limit::Limit;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::ports::Finish;
use trawl_common::web::url::authority;

use crate::embedded::crawls;
use crate::embedded::store::error::Result;
use crate::embedded::store::fields::Fields;

/// Maximum number of reasons that a crawl counts by name: a program names the kinds of its items, so that there may be any
/// number of them.
const MAX_REASONS: i64 = 10_000;

/// Pending additions to the stats of crawls, by row.
#[derive(Default)]
pub(crate) struct StatsDeltas(BTreeMap<i64, StatsDelta>);

#[derive(Default)]
struct StatsDelta {
    counts: Counts,
    bytes: u64,
    left_out: u64,
    reasons: BTreeMap<String, u64>,
    hosts: BTreeMap<String, (Counts, u64)>,
}

impl StatsDeltas {
    /// Counts a URL that was admitted.
    pub(crate) fn admitted(&mut self, crawl: i64, url: &str) {
        let delta = self.0.entry(crawl).or_default();
        delta.counts.admitted += 1;
        if let Some((counts, _)) = delta.host(url) {
            counts.admitted += 1;
        }
    }

    /// The number of URLs of this URL's host that were admitted, as far as it is not written yet.
    pub(crate) fn admitted_of_host(&self, crawl: i64, url: &str) -> u64 {
        let delta = self.0.get(&crawl);
        delta.and_then(|delta| delta.hosts.get(authority(url))).map_or(0, |(counts, _)| counts.admitted)
    }

    /// The number of pages of a crawl that were done, as far as it is not written yet.
    pub(crate) fn done(&self, crawl: i64) -> u64 {
        self.0.get(&crawl).map_or(0, |delta| delta.counts.done)
    }

    /// Counts the page of a URL that has ended, and the number of its links left out because the host had no room for
    /// them.
    pub(crate) fn of_page(&mut self, crawl: i64, finish: &Finish, left_out: u64) {
        let delta = self.0.entry(crawl).or_default();
        delta.left_out += finish.left_out.total() + left_out;
        if left_out > 0 {
            *delta.reasons.entry(format!("left_out:{}", Limit::MaxPerHost.as_str())).or_default() += left_out;
        }
        for (reason, number) in finish.reasons() {
            *delta.reasons.entry(reason).or_default() += number;
        }
    }

    /// Counts a record that has ended, with the size of its body in bytes.
    pub(crate) fn ended(&mut self, crawl: i64, url: &str, end: End, body: u64) {
        let delta = self.0.entry(crawl).or_default();
        *delta.counts.of(end.terminal) += 1;
        delta.bytes = delta.bytes.saturating_add(body);
        if let Some(why) = end.why {
            *delta.reasons.entry(format!("{}:{why}", end.terminal.as_str())).or_default() += 1;
        }
        if let Some((counts, bytes)) = delta.host(url) {
            *counts.of(end.terminal) += 1;
            *bytes = bytes.saturating_add(body);
        }
    }

    /// Writes all additions. Returns the rows of the crawls.
    pub(crate) fn write(self, db: &Connection) -> Result<Vec<i64>> {
        let crawls = self.0.keys().copied().collect();
        for (crawl, delta) in self.0 {
            crawls::count(db, crawl, &delta.counts, delta.bytes, delta.left_out)?;
            add_reasons(db, crawl, delta.reasons)?;
            for (host, (counts, bytes)) in delta.hosts {
                add_host(db, crawl, &host, &counts, bytes)?;
            }
        }
        Ok(crawls)
    }
}

impl StatsDelta {
    /// Returns the counters of a URL's host; `None` for a task.
    fn host(&mut self, url: &str) -> Option<&mut (Counts, u64)> {
        let host = authority(url);
        (!host.is_empty()).then(|| self.hosts.entry(host.to_owned()).or_default())
    }
}

/// Undoes the counting of a URL's terminal state: it has a record again. URLs that ended before version 4 of the file
/// were counted neither by reason nor by host.
pub(crate) fn uncount(
    db: &Connection,
    crawl: i64,
    url: &str,
    terminal: Terminal,
    why: Option<&str>,
) -> Result<()> {
    crawls::uncount(db, crawl, terminal)?;
    let terminal = terminal.as_str();
    if let Some(why) = why {
        let sql = "UPDATE crawl_reasons SET count = max(0, count - 1) WHERE crawl = ?1 AND reason = ?2";
        db.prepare_cached(sql)?.execute(params![crawl, format!("{terminal}:{why}")])?;
    }
    let sql =
        format!("UPDATE crawl_hosts SET {terminal} = max(0, {terminal} - 1) WHERE crawl = ?1 AND host = ?2");
    db.prepare_cached(&sql)?.execute(params![crawl, authority(url)])?;
    Ok(())
}

/// Counts an invalid URL.
pub(crate) fn invalid(db: &Connection, crawl: i64) -> Result<()> {
    add_reason(db, crawl, "dropped:invalid", 1)
}

/// The number of URLs of a host that a crawl has admitted.
pub(crate) fn admitted_of_host(db: &Connection, crawl: i64, url: &str) -> Result<u64> {
    let sql = "SELECT host, admitted FROM crawl_hosts WHERE crawl = ?1 AND host = ?2";
    let mut select = db.prepare_cached(sql)?;
    let mut rows = select.query(params![crawl, authority(url)])?;
    match rows.next()? {
        Some(row) => Fields::new(row, "host", "host").number("admitted"),
        None => Ok(0),
    }
}

/// Adds to the counts of reasons in a crawl. What is beyond [`MAX_REASONS`] counts with all that begins alike, as `items:*`.
fn add_reasons(db: &Connection, crawl: i64, reasons: BTreeMap<String, u64>) -> Result<()> {
    let mut room = None;
    for (reason, count) in reasons {
        let sql = "UPDATE crawl_reasons SET count = count + ?3 WHERE crawl = ?1 AND reason = ?2";
        if db.prepare_cached(sql)?.execute(params![crawl, reason, count as i64])? > 0 {
            continue;
        }
        let left = match room {
            Some(left) => left,
            None => {
                let sql = "SELECT count(*) FROM crawl_reasons WHERE crawl = ?1";
                let known: i64 = db.prepare_cached(sql)?.query_row([crawl], |row| row.get(0))?;
                MAX_REASONS - known
            }
        };
        room = Some(left - 1);
        match left > 0 {
            true => add_reason(db, crawl, &reason, count as i64)?,
            false => {
                let kind = reason.split_once(':').map_or("more", |(kind, _)| kind);
                add_reason(db, crawl, &format!("{kind}:*"), count as i64)?;
            }
        }
    }
    Ok(())
}

/// Adds to the count of a reason in a crawl.
pub(crate) fn add_reason(db: &Connection, crawl: i64, reason: &str, count: i64) -> Result<()> {
    db.prepare_cached(
        "INSERT INTO crawl_reasons (crawl, reason, count) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET count = count + excluded.count",
    )?
    .execute(params![crawl, reason, count])?;
    Ok(())
}

fn add_host(db: &Connection, crawl: i64, host: &str, counts: &Counts, bytes: u64) -> Result<()> {
    let Counts { admitted, done, failed, skipped, expired, cancelled } = *counts;
    let numbers = [admitted, done, failed, skipped, expired, cancelled, bytes].map(|count| count as i64);
    let [admitted, done, failed, skipped, expired, cancelled, bytes] = numbers;
    db.prepare_cached(
        "INSERT INTO crawl_hosts (crawl, host, admitted, done, failed, skipped, expired, cancelled, bytes)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
         ON CONFLICT DO UPDATE SET
             admitted = admitted + excluded.admitted, done = done + excluded.done,
             failed = failed + excluded.failed, skipped = skipped + excluded.skipped,
             expired = expired + excluded.expired, cancelled = cancelled + excluded.cancelled,
             bytes = bytes + excluded.bytes",
    )?
    .execute(params![crawl, host, admitted, done, failed, skipped, expired, cancelled, bytes])?;
    Ok(())
}

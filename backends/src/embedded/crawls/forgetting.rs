//! Commands to forget URLs and crawls, run inside the store.

use rusqlite::{Connection, params};
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::ports::{Error, ErrorKind, Seen};

use crate::embedded::crawls;
use crate::embedded::crawls::crawl_stats;
use crate::embedded::records;
use crate::embedded::records::address::Address;
use crate::embedded::store::Memory;
use crate::embedded::store::error::Result;

/// Returns the number of seen URLs; `None` if the file has crawls of other spiders as well, because stored URLs do
/// not name their spider.
pub(crate) fn count_seen(db: &Connection, spider: &SpiderName) -> Result<Option<u64>> {
    let others = "SELECT count(*) FROM crawls WHERE spider <> ?1";
    if db.prepare_cached(others)?.query_row([spider.as_str()], |row| row.get::<_, i64>(0))? > 0 {
        return Ok(None);
    }
    let all = "SELECT (SELECT count(*) FROM seen) + (SELECT count(*) FROM fresh)";
    let count: i64 = db.prepare_cached(all)?.query_row([], |row| row.get(0))?;
    Ok(Some(count.cast_unsigned()))
}

/// Returns what the spider knows of each of these URLs; with `forgets`, it forgets the ended ones.
pub(crate) fn see(
    db: &Connection,
    memory: &mut Memory,
    addresses: &[Address],
    forgets: bool,
) -> Result<Vec<Seen>> {
    let mut all = Vec::with_capacity(addresses.len());
    for address in addresses {
        all.push(match memory.seen.find_of_spider(db, address)? {
            None => Seen::Never,
            Some(row) if records::exists(db, row.abs())? => Seen::Pending,
            Some(row) => {
                if forgets {
                    memory.seen.remove_of_spider(db, address, row)?;
                }
                Seen::Ended
            }
        });
    }
    Ok(all)
}

/// Makes the only spider of the file forget every URL.
pub(crate) fn forget_all(db: &Connection, memory: &mut Memory, spider: &SpiderName) -> Result<()> {
    let refused = |text: String| Err(Error::new(ErrorKind::Refused, text).into());
    if count_seen(db, spider)?.is_none() {
        return refused(
            "the state file has crawls of several spiders, and what is kept of a URL does not say whose it is: name URLs, or \
             remove the file"
                .to_owned(),
        );
    }
    let going =
        crawl_stats::all(db, crawl_stats::Clock::Runs)?.into_iter().find(|stats| !stats.status.is_over());
    if let Some(stats) = going {
        return refused(not_over(&stats.crawl_ref()));
    }
    db.execute_batch("DELETE FROM seen; DELETE FROM fresh; DELETE FROM gone;")?;
    memory.seen = Default::default();
    Ok(())
}

/// Forgets a crawl that is over.
pub(crate) fn forget_crawl(db: &Connection, memory: &mut Memory, crawl: &CrawlRef) -> Result<()> {
    let Some(known) = crawls::find(db, crawl)? else { return Ok(()) };
    if !known.status.is_over() {
        return Err(Error::new(ErrorKind::Refused, not_over(crawl)).into());
    }
    memory.forget_crawl(db, known.key)?;
    for table in ["crawl_reasons", "crawl_hosts", "failed", "spider_texts", "tasks", "requests"] {
        db.execute(&format!("DELETE FROM {table} WHERE crawl = ?1"), [known.key])?;
    }
    db.execute("DELETE FROM sources WHERE crawl = ?1", [crawl.id.as_str()])?;
    db.execute("DELETE FROM crawls WHERE key = ?1", params![known.key])?;
    Ok(())
}

fn not_over(crawl: &CrawlRef) -> String {
    format!("crawl {} is not over: let it go on to its end, or `trawl cancel {}` first", crawl.id, crawl.id)
}

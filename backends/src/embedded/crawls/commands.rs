//! Operator commands for crawls and their failed URLs, run inside the store.

use rusqlite::{Connection, params};
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::outcome::{Class, Reason, Skip, Terminal};
use trawl_common::frontier::{End, Key, TaskKey, UrlState};
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Claim, Finish, NewWork};

use crate::embedded::crawls;
use crate::embedded::crawls::Crawls;
use crate::embedded::crawls::failures;
use crate::embedded::crawls::stats_delta::{self, StatsDeltas};
use crate::embedded::records;
use crate::embedded::records::address::Address;
use crate::embedded::records::payloads;
use crate::embedded::settle::ending::{end, end_if_complete, end_the_rest};
use crate::embedded::settle::transitions::find;
use crate::embedded::store::Memory;
use crate::embedded::store::error::Result;

/// Pauses a crawl: its records are skipped until it is resumed.
pub(crate) fn pause(db: &Connection, crawl: &CrawlRef) -> Result<()> {
    let row = crawls::going(db, crawl)?;
    if row.status != CrawlState::Paused {
        crawls::pause(db, row.key)?;
    }
    Ok(())
}

/// Pauses a crawl for a reason.
pub(crate) fn hold(db: &Connection, crawl: &CrawlRef, why: &str) -> Result<()> {
    let row = crawls::going(db, crawl)?;
    if row.status != CrawlState::Paused {
        crawls::pause(db, row.key)?;
    }
    db.prepare_cached("INSERT OR REPLACE INTO pauses (crawl, why) VALUES (?1, ?2)")?
        .execute(params![row.key, why])?;
    Ok(())
}

/// Resumes a crawl, or ends it if everything was done meanwhile, or its limit is reached.
pub(crate) fn resume(db: &Connection, memory: &mut Memory, crawl: &CrawlRef) -> Result<()> {
    let row = crawls::going(db, crawl)?;
    if row.status == CrawlState::Paused {
        crawls::resume(db, row.key)?;
        db.prepare_cached("DELETE FROM pauses WHERE crawl = ?1")?.execute([row.key])?;
        memory.watched.restart(row.key);
        memory.dispatch.walk_again();
        end_the_rest(db, memory, row.key)?;
        end_if_complete(db, memory, row.key)?;
    }
    Ok(())
}

/// Cancels a crawl.
pub(crate) fn cancel(db: &Connection, memory: &mut Memory, crawl: &CrawlRef) -> Result<()> {
    let row = match crawls::find(db, crawl)? {
        Some(row) if row.status == CrawlState::Cancelled => return Ok(()),
        Some(row) if !row.status.is_over() => row,
        Some(_) | None => return Err(crawls::over(crawl).into()),
    };
    crawls::cancel(db, row.key)?;
    end_the_rest(db, memory, row.key)?;
    memory.forget_crawl(db, row.key)?;
    memory.leases.end(crawl);
    Ok(())
}

/// Cancels tasks of a crawl. Returns the number of those that had not ended.
pub(crate) fn cancel_tasks(
    db: &Connection,
    memory: &mut Memory,
    crawl: &CrawlRef,
    keys: &[TaskKey],
) -> Result<u64> {
    let mut crawls = Crawls::default();
    let (mut deltas, mut cancelled) = (StatsDeltas::default(), 0);
    for key in keys {
        let address = Address::new(crawl, key.as_str());
        let Some(found) = find(db, memory, &mut crawls, &address)? else { return Ok(0) };
        let (Some(id), UrlState::Pending(_)) = (found.id, found.url) else { continue };
        let finish =
            Finish::new(Claim { crawl: crawl.clone(), key: key.clone().into() }, Terminal::Cancelled);
        let cancels = End::new(Terminal::Cancelled, None);
        end(db, memory, (&address, &finish), cancels, (found.crawl.key, id))?;
        deltas.ended(found.crawl.key, key.as_str(), cancels, 0);
        cancelled += 1;
    }
    deltas.write(db)?;
    if let Some(row) = crawls.find(db, crawl)? {
        // No message comes late here, and an ad-hoc crawl never ends, so its seen keys are removed at once.
        if crawl.is_adhoc() {
            memory.seen.forget(db, row.key)?;
        }
        end_if_complete(db, memory, row.key)?;
    }
    Ok(cancelled)
}

/// Moves URLs and tasks from the list of `from` into `into` as records, available at once. An entry that has a
/// record again, because a later crawl found it, stays where it is. Returns the number moved.
pub(crate) fn replay(
    db: &Connection,
    memory: &mut Memory,
    from: &CrawlRef,
    into: &CrawlRef,
    keys: &[Key],
) -> Result<u64> {
    let target = crawls::going(db, into)?;
    let Some(source) = crawls::find(db, from)? else { return Ok(0) };
    let mut replayed = 0;
    let mut deltas = StatsDeltas::default();
    for key in keys {
        let Some((terminal, note)) = failures::find(db, source.key, key)? else { continue };
        let Some(work) = payloads::find(db, source.key, key)? else { continue };
        let why = match terminal {
            Terminal::Failed if note.cause.reason == Reason::Corrupt => Some(Reason::Corrupt.as_str()),
            Terminal::Failed => note.cause.class.map(Class::as_str),
            Terminal::Skipped => Some(Skip::Blocked.as_str()),
            Terminal::Done | Terminal::Expired | Terminal::Cancelled => None,
        };
        let again = NewWork { depth: note.depth, referrer: note.referrer, ..NewWork::new(work, note.lane) };
        let address = Address::new(into, key.as_str());
        if !records::insert_again(db, &mut memory.seen, &target, &address, &again)? {
            continue;
        }
        failures::remove(db, source.key, key)?;
        if source.key == target.key {
            stats_delta::uncount(db, target.key, key.as_str(), terminal, why)?;
        } else {
            deltas.admitted(target.key, key.as_str());
        }
        replayed += 1;
    }
    deltas.write(db)?;
    memory.dispatch.stir();
    Ok(replayed)
}

/// Removes URLs and tasks from the list for good. Returns the number removed.
pub(crate) fn purge(db: &Connection, crawl: &CrawlRef, keys: &[Key]) -> Result<u64> {
    let Some(row) = crawls::find(db, crawl)? else { return Ok(0) };
    let mut purged = 0;
    for key in keys {
        purged += u64::from(failures::remove(db, row.key, key)?);
    }
    Ok(purged)
}

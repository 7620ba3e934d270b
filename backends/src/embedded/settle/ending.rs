//! How records and crawls end, as it runs inside the store.

use rusqlite::Connection;
use trawl_common::frontier::End;
use trawl_common::names::CrawlRef;
use trawl_common::ports::Finish;

use crate::embedded::admission::leases::Lease;
use crate::embedded::admission::sources;
use crate::embedded::crawls;
use crate::embedded::crawls::failures;
use crate::embedded::crawls::stats_delta::StatsDeltas;
use crate::embedded::records;
use crate::embedded::records::address::Address;
use crate::embedded::records::payloads;
use crate::embedded::seen;
use crate::embedded::settle::transitions::context;
use crate::embedded::store::Memory;
use crate::embedded::store::error::{Result, unless_corrupt};

/// Deletes the record of a URL or a task that has ended, and notes what its end means for later.
pub(crate) fn end(
    db: &Connection,
    memory: &mut Memory,
    (address, finish): (&Address, &Finish),
    end: End,
    (crawl, id): (i64, i64),
) -> Result<()> {
    records::delete(db, id)?;
    memory.forget(id);
    if let Some(landed) = &finish.landed {
        let landed = Address::new(&finish.claim.crawl, landed.as_str());
        records::mark_seen(db, &mut memory.seen, crawl, &landed)?;
    }
    let is_listed = end.is_listed() && finish.note.is_some();
    if is_listed {
        failures::add(db, crawl, finish)?;
    }
    match is_listed {
        true => payloads::keep(db, crawl, &finish.claim.key)?,
        false => payloads::remove(db, crawl, &finish.claim.key)?,
    }
    if end.stays_seen { memory.seen.add_for_spider(db, address, id) } else { seen::leave(db, crawl, id) }
}

/// Ends all remaining records of a crawl, if it is cancelled or has reached its page limit.
pub(crate) fn end_the_rest(db: &Connection, memory: &mut Memory, key: i64) -> Result<()> {
    let Some(end) = context(memory, &crawls::at(db, key)?).end_of_rest() else { return Ok(()) };
    seen::leave_all(db, key)?;
    let mut deltas = StatsDeltas::default();
    records::delete_all(db, key, |id, url| {
        memory.forget(id);
        deltas.ended(key, url, end, 0);
    })?;
    payloads::remove_all(db, key)?;
    deltas.write(db)?;
    Ok(())
}

/// Finishes a crawl that has no records left. URLs that expired in it may then be found again.
pub(crate) fn end_if_complete(db: &Connection, memory: &mut Memory, key: i64) -> Result<()> {
    if crawls::finish_if_complete(db, key)? {
        memory.forget_crawl(db, key)?;
    }
    Ok(())
}

/// Ends discovery where the last session was neither closed nor abandoned, and its lease has lapsed.
pub(crate) fn end_lapsed(db: &Connection, memory: &mut Memory) -> Result<()> {
    for lease in memory.leases.take_lapsed() {
        unless_corrupt(end_unread(db, memory, &lease))?;
    }
    Ok(())
}

/// Handles a lapsed lease: the sources that were to be read under it stay unread.
fn end_unread(
    db: &Connection,
    memory: &mut Memory,
    Lease { crawl, sources: read, .. }: &Lease,
) -> Result<()> {
    let Some(known) = crawls::find(db, crawl)? else { return Ok(()) };
    sources::end(db, known.key, *read)?;
    let is_last = !memory.leases.is_fed(crawl);
    // A session that reads no sources does not tell whether others have read theirs.
    if read.is_some() || (is_last && !sources::are_known(db, known.key)?) {
        sources::leave_unread(db, known.key, *read)?;
    }
    if is_last { end_discovery(db, memory, crawl) } else { Ok(()) }
}

/// Ends the discovery of a crawl: every source has been read, or nobody reads them any more.
pub(crate) fn end_discovery(db: &Connection, memory: &mut Memory, crawl: &CrawlRef) -> Result<()> {
    let Some(crawl) = crawls::find(db, crawl)? else { return Ok(()) };
    crawls::end_discovery(db, crawl.key)?;
    end_if_complete(db, memory, crawl.key)
}

//! The transitions of a URL's state, as they run inside the store.
//!
//! Each reads the record, checks who may do what, writes, and counts what it wrote. All of it is one
//! savepoint, so a counter and the rows it counts never part.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

use rusqlite::Connection;
use trawl_common::message::Message;
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::outcome::{Skip, Terminal};
use trawl_common::ports::{Discovery, Finish, Heard, Linked, MAX_STARTS, Parking, Start, Taken, Terms};
use trawl_common::time::UnixMs;

use super::books::{End, Sums};
use super::crawls::Crawl;
use super::error::Result;
use super::leases::stale;
use super::records::{Address, Addressed, Record, Sight};
use super::store::Memory;
use super::{books, crawls, failures, records, seen};

/// A crawl begins, or goes on.
pub(super) fn open(
    db: &Connection,
    memory: &mut Memory,
    crawl: &CrawlRef,
    terms: &Terms,
    holder: String,
    ttl: Duration,
) -> Result<Discovery> {
    let row = crawls::ensure_with(db, crawl, terms)?;
    if row.status.is_over() {
        return Err(crawls::over(crawl).into());
    }
    memory.seen.look_again();
    crawls::begin_discovery(db, row.key)?;
    let token = memory.leases.take(crawl, holder, ttl)?;
    Ok(Discovery { crawl: crawl.clone(), token, terms: row.terms })
}

/// Discovery ends with the last lease. To close twice is to close once, as long as nobody has opened since.
pub(super) fn close(db: &Connection, memory: &mut Memory, lease: &Discovery) -> Result<()> {
    let crawl = crawls::find(db, &lease.crawl)?.ok_or_else(|| stale(&lease.crawl))?;
    if let Err(stale) = memory.leases.check(lease) {
        return if crawl.discovered { Ok(()) } else { Err(stale.into()) };
    }
    memory.leases.give_back(lease);
    if memory.leases.is_fed(&lease.crawl) {
        return Ok(());
    }
    crawls::end_discovery(db, crawl.key)?;
    end_if_complete(db, memory, crawl.key)
}

/// Finishes a crawl of which nothing is left. What expired in it may then be found again.
pub(super) fn end_if_complete(db: &Connection, memory: &mut Memory, crawl: i64) -> Result<()> {
    if crawls::finish_if_complete(db, crawl)? {
        memory.seen.forget(db, crawl)?;
    }
    Ok(())
}

/// New URLs become records, available at once.
pub(super) fn admit(
    db: &Connection,
    memory: &mut Memory,
    lease: &Discovery,
    urls: &[Addressed<Message>],
) -> Result<Vec<bool>> {
    memory.leases.check(lease)?;
    let crawl = crawls::going(db, &lease.crawl)?;
    let taken = take_in(db, memory, &crawl, urls, None)?;
    Ok(taken.into_iter().map(|taken| taken == Taken::New).collect())
}

/// What a page links to becomes records, as long as the worker holds the page.
pub(super) fn admit_links(
    db: &Connection,
    memory: &mut Memory,
    worker: &WorkerId,
    (page, links): &Addressed<Vec<Addressed<Message>>>,
) -> Result<Linked> {
    let going = crawls::find(db, &page.crawl)?.filter(|crawl| !crawl.status.is_over());
    let (Some(crawl), Some(_)) = (going, held(db, memory, worker, page)?) else {
        return Ok(Linked::NotHeld);
    };
    let most = crawl.terms.max_per_host.map(NonZeroU64::get);
    take_in(db, memory, &crawl, links, most).map(Linked::Taken)
}

/// URLs become records, available at once, up to `most` of each host.
fn take_in(
    db: &Connection,
    memory: &mut Memory,
    crawl: &Crawl,
    urls: &[Addressed<Message>],
    most: Option<u64>,
) -> Result<Vec<Taken>> {
    let mut sums = Sums::default();
    let mut all = Vec::with_capacity(urls.len());
    for address_and_url in urls {
        let (address, Message { url, .. }) = address_and_url;
        let has_room = match most {
            None => true,
            Some(most) => {
                let written = books::admitted_of_host(db, crawl.key, url.as_str())?;
                written + sums.admitted_of_host(crawl.key, url.as_str()) < most
            }
        };
        all.push(if !has_room && memory.seen.find(db, address)?.is_none() {
            Taken::LeftOut
        } else if records::insert(db, &mut memory.seen, crawl, address_and_url)?.is_some() {
            sums.admitted(crawl.key, url.as_str());
            Taken::New
        } else {
            Taken::Seen
        });
    }
    sums.write(db)?;
    memory.lines.stir();
    Ok(all)
}

/// A URL that no producer admitted becomes a record, unless its crawl is over, or its spider saw it, or, if it is a request,
/// it was asked for lately. Returns the new record's row.
pub(super) fn admit_on_the_spot(
    db: &Connection,
    memory: &mut Memory,
    message: &Addressed<Message>,
) -> Result<Option<i64>> {
    let crawl = crawls::ensure(db, &message.1.crawl)?;
    if crawl.status.is_over() {
        return Ok(None);
    }
    let id = match message.1.is_request() {
        false => records::insert(db, &mut memory.seen, &crawl, message)?,
        true if memory.requests.has(&message.0) => None,
        true => {
            memory.requests.note(&message.0);
            records::insert_again(db, &mut memory.seen, &crawl, message)?
        }
    };
    if id.is_some() {
        let mut sums = Sums::default();
        sums.admitted(crawl.key, message.1.url.as_str());
        sums.write(db)?;
        memory.lines.stir();
    }
    Ok(id)
}

/// A worker received a message: is it the worker's to handle?
pub(super) fn hear(
    db: &Connection,
    memory: &mut Memory,
    worker: &WorkerId,
    message: &Addressed<Message>,
) -> Result<Heard> {
    let mut sight = records::sight(db, &mut memory.seen, &message.0)?;
    let Message { crawl, is_ours, .. } = &message.1;
    if !is_ours && !crawl.is_adhoc() && crawls::find(db, crawl)?.is_none() {
        return Ok(Heard::Unknown);
    }
    let is_request = message.1.is_request();
    let is_new = matches!(sight, Sight::Unseen) || is_request && matches!(sight, Sight::Ended);
    if is_new && admit_on_the_spot(db, memory, message)?.is_some() {
        sight = records::sight(db, &mut memory.seen, &message.0)?;
    }
    let Sight::Pending(record) = sight else {
        if is_request && !is_ours {
            books::repeated(db, crawls::ensure(db, crawl)?.key)?;
        }
        return Ok(Heard::Drop);
    };
    let is_held = memory.hands.is_held(record.id);
    let is_early = !is_held && record.due.is_some_and(|due| due > UnixMs::now());
    if record.is_paused || is_early || memory.hands.is_held_against(record.id, worker) {
        return Ok(Heard::Drop);
    }
    memory.hands.hold(record.id, record.lane, worker);
    if record.room == Some(0) {
        return Ok(Heard::Full);
    }
    let Record { attempts, starts, deadline, .. } = record;
    Ok(Heard::Take { attempts, starts, deadline })
}

/// A worker goes on holding what it has. What was never seen, and is in its hands nevertheless, it holds too. Returns whether
/// it holds the URL.
pub(super) fn keep(
    db: &Connection,
    memory: &mut Memory,
    worker: &WorkerId,
    message: &Addressed<Message>,
) -> Result<bool> {
    match records::sight(db, &mut memory.seen, &message.0)? {
        Sight::Pending(record) if memory.hands.is_held_by(record.id, worker) => {
            memory.hands.keep(record.id);
            Ok(true)
        }
        Sight::Unseen => {
            let admitted = admit_on_the_spot(db, memory, message)?;
            if let Some(id) = admitted {
                memory.hands.hold(id, message.1.lane, worker);
            }
            Ok(admitted.is_some())
        }
        Sight::Pending(_) | Sight::Ended => Ok(false),
    }
}

/// A fetch is about to begin, unless a person holds the crawl: then the URL waits with the others.
pub(super) fn start(
    db: &Connection,
    memory: &mut Memory,
    worker: &WorkerId,
    address: &Address,
) -> Result<Start> {
    let Some(record) = held(db, memory, worker, address)? else { return Ok(Start::Lost) };
    if record.is_paused {
        memory.let_go(record.id, record.lane);
        return Ok(Start::Lost);
    }
    if !memory.hands.has_started(record.id) {
        match record.room {
            Some(0) => return Ok(Start::Full),
            Some(room) if memory.hands.started_of(record.crawl) as u64 >= room => return Ok(Start::Awaited),
            Some(_) | None => {}
        }
        if record.starts >= MAX_STARTS {
            return Ok(Start::Poison);
        }
        records::start(db, record.id)?;
        memory.hands.start(record.id, record.crawl);
    }
    Ok(Start::Go)
}

/// Only a start without an end counts towards poison, and this one has ended. What has not begun here has ended nothing.
fn end_start(db: &Connection, memory: &Memory, record: &Record) -> Result<()> {
    if memory.hands.has_started(record.id) { records::reset_starts(db, record.id) } else { Ok(()) }
}

/// A URL is put aside. Returns whether the worker held it, or has put it aside by the same word before.
pub(super) fn park(
    db: &Connection,
    memory: &mut Memory,
    worker: &WorkerId,
    (address, parking): &Addressed<Parking>,
) -> Result<bool> {
    let Sight::Pending(record) = records::sight(db, &mut memory.seen, address)? else { return Ok(false) };
    if !memory.hands.is_held_by(record.id, worker) {
        return Ok(!memory.hands.is_held(record.id) && record.due == Some(parking.until));
    }
    end_start(db, memory, &record)?;
    records::park(db, record.id, parking)?;
    memory.let_go(record.id, record.lane);
    Ok(true)
}

/// A URL goes back to its lane.
pub(super) fn release(
    db: &Connection,
    memory: &mut Memory,
    worker: &WorkerId,
    address: &Address,
) -> Result<()> {
    if let Some(record) = held(db, memory, worker, address)? {
        end_start(db, memory, &record)?;
        memory.let_go(record.id, record.lane);
    }
    Ok(())
}

/// URLs end that their worker holds, and with the last of them their crawl. Returns which have ended, here or before.
pub(super) fn finish(
    db: &Connection,
    memory: &mut Memory,
    worker: &WorkerId,
    finishes: &[Addressed<Finish>],
) -> Result<Vec<bool>> {
    let mut ended = Vec::with_capacity(finishes.len());
    let mut sums = Sums::default();
    let mut crawls = BTreeMap::new();
    for (address, finish) in finishes {
        let record = match records::sight(db, &mut memory.seen, address)? {
            Sight::Pending(record) if memory.hands.is_held_by(record.id, worker) => record,
            other => {
                ended.push(is_past(db, address, &other)?);
                continue;
            }
        };
        end(db, memory, address, finish, &record)?;
        let Finish { terminal, why, bytes, claim, .. } = finish;
        let is_beyond =
            *terminal == Terminal::Done && record.room.is_some_and(|room| sums.done(record.crawl) >= room);
        let end = match is_beyond {
            // More than begin cannot be done, unless this process forgot who began.
            true => End { terminal: Terminal::Skipped, why: Some(Skip::Limit.as_str()), bytes: *bytes },
            false => End { terminal: *terminal, why: *why, bytes: *bytes },
        };
        sums.of_page(record.crawl, finish);
        sums.ended(record.crawl, claim.url.as_str(), end);
        crawls.insert(record.crawl, claim.crawl.clone());
        ended.push(true);
    }
    sums.write(db)?;
    for (key, crawl) in crawls {
        skip_the_rest_if_full(db, memory, &crawl)?;
        end_if_complete(db, memory, key)?;
    }
    Ok(ended)
}

/// Whether a URL has ended that no worker is to end now.
fn is_past(db: &Connection, address: &Address, sight: &Sight) -> Result<bool> {
    Ok(match sight {
        Sight::Pending(_) => false,
        Sight::Ended => true,
        Sight::Unseen => crawls::find(db, &address.crawl)?.is_some_and(|crawl| crawl.status.is_over()),
    })
}

/// Deletes the record of a URL that has ended, and notes what its end means for later.
fn end(
    db: &Connection,
    memory: &mut Memory,
    address: &Address,
    finish: &Finish,
    record: &Record,
) -> Result<()> {
    records::delete(db, record.id)?;
    memory.hands.let_go(record.id);
    memory.requests.note_in_adhoc(address);
    if let Some(landed) = &finish.landed {
        let landed = Address::new(&finish.claim.crawl, landed);
        memory.requests.note_in_adhoc(&landed);
        records::mark_seen(db, &mut memory.seen, record.crawl, &landed)?;
    }
    let is_blocked = finish.why == Some(Skip::Blocked.as_str());
    if is_blocked || matches!(finish.terminal, Terminal::Failed | Terminal::Expired) {
        failures::add(db, record.crawl, finish)?;
    }
    let untouched = matches!(finish.terminal, Terminal::Expired | Terminal::Cancelled)
        || is_blocked
        || finish.why == Some(Skip::Limit.as_str());
    if untouched {
        seen::leave(db, record.crawl, record.id)
    } else {
        memory.seen.add_for_spider(db, address, record.id)
    }
}

/// What a crawl leaves undone that has done as many pages as it may is skipped.
fn skip_the_rest_if_full(db: &Connection, memory: &mut Memory, crawl: &CrawlRef) -> Result<()> {
    let Some(crawl) = crawls::find(db, crawl)?.filter(|crawl| crawl.room() == Some(0)) else { return Ok(()) };
    seen::leave_all(db, crawl.key)?;
    let mut sums = Sums::default();
    let skipped = End { terminal: Terminal::Skipped, why: Some(Skip::Limit.as_str()), bytes: 0 };
    records::delete_all(db, crawl.key, |id, url| {
        memory.hands.let_go(id);
        sums.ended(crawl.key, url, skipped);
    })?;
    sums.write(db)
}

/// Whether a URL is pending, or has ended.
pub(super) fn has_seen(db: &Connection, memory: &mut Memory, address: &Address) -> Result<bool> {
    if address.crawl.is_adhoc() {
        return Ok(memory.requests.has(address));
    }
    Ok(!matches!(records::sight(db, &mut memory.seen, address)?, Sight::Unseen))
}

/// What nobody keeps any more is available again, and the discovery of producers that died has ended.
pub(super) fn sweep(db: &Connection, memory: &mut Memory) -> Result<()> {
    for crawl in memory.leases.lapsed() {
        if let Some(crawl) = crawls::find(db, &crawl)? {
            crawls::end_discovery(db, crawl.key)?;
            end_if_complete(db, memory, crawl.key)?;
        }
    }
    for (id, lane) in memory.hands.lapsed() {
        memory.let_go(id, lane);
    }
    Ok(())
}

/// The record at `address`, if `worker` holds it.
fn held(
    db: &Connection,
    memory: &mut Memory,
    worker: &WorkerId,
    address: &Address,
) -> Result<Option<Record>> {
    Ok(match records::sight(db, &mut memory.seen, address)? {
        Sight::Pending(record) if memory.hands.is_held_by(record.id, worker) => Some(record),
        Sight::Pending(_) | Sight::Ended | Sight::Unseen => None,
    })
}

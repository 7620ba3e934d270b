//! The transitions of a URL's state, as they run inside the store.
//!
//! Each reads the record, asks the rules (`trawl_common::frontier`) what becomes of it, writes that, and counts what it wrote. All
//! of it is one savepoint, so a counter and the rows it counts never part.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

use rusqlite::Connection;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::{Context, End, Finished, Record, Room, State, UrlState};
use trawl_common::frontier::{Heard, Start, Taken};
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{Finish, Terms};
use trawl_common::time::UnixMs;
use trawl_engine::{Lease, Linked, Parking};

use super::books::Sums;
use super::crawls::{Crawl, LastRow};
use super::error::Result;
use super::leases::stale;
use super::records::{Address, Addressed, Sight};
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
) -> Result<Lease> {
    let row = crawls::ensure_with(db, crawl, terms)?;
    if row.status.is_over() {
        return Err(crawls::over(crawl).into());
    }
    memory.seen.look_again();
    crawls::begin_discovery(db, row.key)?;
    let token = memory.leases.take(crawl, holder, ttl)?;
    Ok(Lease { crawl: crawl.clone(), token, terms: row.terms })
}

/// Lease ends with the last lease. To close twice is to close once, as long as nobody has opened since.
pub(super) fn close(db: &Connection, memory: &mut Memory, lease: &Lease) -> Result<()> {
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
    lease: &Lease,
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
    last: &mut LastRow,
    worker: &WorkerId,
    (page, links): &Addressed<Vec<Addressed<Message>>>,
) -> Result<Linked> {
    let Some(found) = find(db, memory, last, page)? else { return Ok(Linked::NotHeld) };
    if !found.url.takes_links(worker, &found.context) {
        return Ok(Linked::NotHeld);
    }
    let most = found.crawl.terms.max_per_host.map(NonZeroU64::get);
    take_in(db, memory, &found.crawl, links, most).map(Linked::Taken)
}

/// URLs become records, available at once, up to `most` of each host.
fn take_in(
    db: &Connection,
    memory: &mut Memory,
    crawl: &Crawl,
    urls: &[Addressed<Message>],
    most: Option<u64>,
) -> Result<Vec<Taken>> {
    let context = context(memory, crawl);
    let mut sums = Sums::default();
    let mut all = Vec::with_capacity(urls.len());
    for address_and_url in urls {
        let (address, Message { url, lane, deadline, .. }) = address_and_url;
        // Whether what was seen has ended is not asked here.
        let seen = memory.seen.find(db, address)?;
        let mut state = seen.map_or(UrlState::Unseen, |_| UrlState::Ended);
        let has_room = match most {
            Some(most) if seen.is_none() => {
                let written = books::admitted_of_host(db, crawl.key, url.as_str())?;
                written + sums.admitted_of_host(crawl.key, url.as_str()) < most
            }
            Some(_) | None => true,
        };
        let taken = state.admit(*lane, *deadline, has_room, &context);
        if taken == Taken::New {
            records::insert(db, &mut memory.seen, crawl, address_and_url)?;
            sums.admitted(crawl.key, url.as_str());
        }
        all.push(taken);
    }
    sums.write(db)?;
    memory.lines.stir();
    Ok(all)
}

/// A URL that no producer admitted becomes a record, unless its crawl is over, or its spider saw it, or, if it is a request,
/// it was asked for lately.
pub(super) fn admit_on_the_spot(
    db: &Connection,
    memory: &mut Memory,
    message: &Addressed<Message>,
) -> Result<()> {
    let crawl = crawls::ensure(db, &message.1.crawl)?;
    let mut found = find_in(db, memory, crawl, &message.0)?;
    found.look_as_request(memory, message);
    if !found.context.status.is_over() {
        let Message { lane, deadline, .. } = message.1;
        found.change(db, memory, Some(message), |url, context| url.admit(lane, deadline, true, context))?;
    }
    Ok(())
}

/// What decides about the URLs of a crawl now.
fn context(memory: &Memory, crawl: &Crawl) -> Context {
    let room = |left| Room { left, begun: memory.hands.begun_of(crawl.key) };
    Context {
        now: UnixMs::now(),
        patience: memory.patience,
        status: crawl.status,
        room: crawl.room().map(room),
        // A file forgets nothing, and no message waits beside its record.
        is_recovering: false,
        pause_wait: Duration::ZERO,
    }
}

/// A URL, and what decides about it.
struct Found {
    crawl: Crawl,
    /// The row of its record, in this crawl or another, if it has one.
    id: Option<i64>,
    url: UrlState,
    context: Context,
}

/// The URL at `address`; `None` if there is no such crawl.
fn find(
    db: &Connection,
    memory: &mut Memory,
    last: &mut LastRow,
    address: &Address,
) -> Result<Option<Found>> {
    match last.find(db, &address.crawl)? {
        Some(crawl) => find_in(db, memory, crawl, address).map(Some),
        None => Ok(None),
    }
}

fn find_in(db: &Connection, memory: &mut Memory, crawl: Crawl, address: &Address) -> Result<Found> {
    let context = context(memory, &crawl);
    let Sight { id, url } = records::sight(db, memory, &crawl, address, context.now)?;
    Ok(Found { crawl, id, url, context })
}

impl Found {
    /// A request does not ask what its spider has seen, but whether it was asked for lately. What has a record keeps that.
    fn look_as_request(&mut self, memory: &Memory, (address, message): &Addressed<Message>) {
        if message.is_request() && self.id.is_none() {
            self.url = memory.requests.state(address);
        }
    }

    /// Applies a transition that ends nothing, and writes what it changes: a URL that becomes pending has a record of what
    /// `message` says.
    fn change<T>(
        mut self,
        db: &Connection,
        memory: &mut Memory,
        message: Option<&Addressed<Message>>,
        rule: impl FnOnce(&mut UrlState, &Context) -> T,
    ) -> Result<T> {
        let before = self.url.clone();
        let told = rule(&mut self.url, &self.context);
        match (&before, &self.url, self.id, message) {
            (UrlState::Pending(before), UrlState::Pending(after), Some(id), _) => {
                self.write(db, memory, id, before, after)?;
            }
            (_, UrlState::Pending(record), None, Some(message)) => self.adopt(db, memory, record, message)?,
            _ => {}
        }
        Ok(told)
    }

    /// Writes the record of a URL that a message has brought.
    fn adopt(
        &self,
        db: &Connection,
        memory: &mut Memory,
        record: &Record,
        message: &Addressed<Message>,
    ) -> Result<()> {
        let key = self.crawl.key;
        let id = match message.1.is_request() {
            false => Some(records::insert(db, &mut memory.seen, &self.crawl, message)?),
            true => {
                memory.requests.note(&message.0);
                records::insert_again(db, &mut memory.seen, &self.crawl, message)?
            }
        };
        if let Some(id) = id {
            let mut sums = Sums::default();
            sums.admitted(key, message.1.url.as_str());
            sums.write(db)?;
            memory.lines.stir();
            self.give(memory, id, record);
        }
        Ok(())
    }

    fn write(
        &self,
        db: &Connection,
        memory: &mut Memory,
        id: i64,
        before: &Record,
        after: &Record,
    ) -> Result<()> {
        let has_started = |record: &Record| match record.state {
            State::Held { has_started, .. } => Some(has_started),
            State::New { .. } | State::Queued { .. } | State::Parked { .. } => None,
        };
        // Leases are in memory alone.
        if before != after && (has_started(after).is_none() || has_started(before) != has_started(after)) {
            records::update(db, id, after)?;
        }
        memory.hands.set_begun(id, self.crawl.key, after.has_begun);
        if has_started(before).is_some() && has_started(after).is_none() {
            memory.let_go(id, after.lane);
        }
        self.give(memory, id, after);
        Ok(())
    }

    fn give(&self, memory: &mut Memory, id: i64, record: &Record) {
        if let State::Held { by, since, has_started } = &record.state {
            memory.hands.hold(id, record.lane, by, *has_started, self.context.now.since(*since));
        }
    }
}

/// A worker received a message: is it the worker's to handle?
pub(super) fn hear(
    db: &Connection,
    memory: &mut Memory,
    last: &mut LastRow,
    worker: &WorkerId,
    message: &Addressed<Message>,
) -> Result<Heard> {
    let Message { crawl, is_ours, .. } = &message.1;
    let crawl = match last.find(db, crawl)? {
        None if !is_ours && !crawl.is_adhoc() => return Ok(Heard::Unknown),
        known => known.map_or_else(|| crawls::ensure(db, crawl), Ok)?,
    };
    let key = crawl.key;
    let mut found = find_in(db, memory, crawl, &message.0)?;
    found.look_as_request(memory, message);
    if found.url == UrlState::Ended && message.1.is_request() && !is_ours {
        books::repeated(db, key)?;
    }
    let heard =
        found.change(db, memory, Some(message), |url, context| url.hear(worker, &message.1, context))?;
    Ok(match heard {
        // A record is its own message: it is found when it is free, and none has to wait beside it.
        Heard::Wait { .. } => Heard::Drop,
        heard => heard,
    })
}

/// A worker goes on holding what it has. What was never seen, and is in its hands nevertheless, it holds too. Returns whether
/// it holds the URL.
pub(super) fn keep(
    db: &Connection,
    memory: &mut Memory,
    worker: &WorkerId,
    message: &Addressed<Message>,
) -> Result<bool> {
    let crawl = crawls::ensure(db, &message.1.crawl)?;
    let found = find_in(db, memory, crawl, &message.0)?;
    found.change(db, memory, Some(message), |url, context| url.keep(worker, &message.1, context))
}

/// A fetch is about to begin, unless a person holds the crawl: then the URL waits with the others.
pub(super) fn start(
    db: &Connection,
    memory: &mut Memory,
    last: &mut LastRow,
    worker: &WorkerId,
    address: &Address,
) -> Result<Start> {
    let Some(found) = find(db, memory, last, address)? else { return Ok(Start::Lost) };
    found.change(db, memory, None, |url, context| url.start(worker, context))
}

/// A URL is put aside. Returns whether the worker held it, or has put it aside by the same word before.
pub(super) fn park(
    db: &Connection,
    memory: &mut Memory,
    last: &mut LastRow,
    worker: &WorkerId,
    (address, parking): &Addressed<Parking>,
) -> Result<bool> {
    let Some(found) = find(db, memory, last, address)? else { return Ok(false) };
    let Parking { until, failed, .. } = *parking;
    found.change(db, memory, None, |url, context| url.park(worker, until, failed, context))
}

/// A URL goes back to its lane.
pub(super) fn release(
    db: &Connection,
    memory: &mut Memory,
    last: &mut LastRow,
    worker: &WorkerId,
    address: &Address,
) -> Result<()> {
    let Some(found) = find(db, memory, last, address)? else { return Ok(()) };
    found.change(db, memory, None, |url, context| url.release(worker, context))
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
    let mut last = LastRow::default();
    for (address, finish) in finishes {
        let Some(Found { crawl, id, mut url, mut context }) = find(db, memory, &mut last, address)? else {
            ended.push(has_seen(db, memory, address)?);
            continue;
        };
        if let Some(room) = &mut context.room {
            room.left = room.left.saturating_sub(sums.done(crawl.key));
        }
        let finished = url.finish(worker, finish.terminal, finish.why, &context);
        if let (Finished::Now(end), Some(id)) = (finished, id) {
            self::end(db, memory, (address, finish), end, (crawl.key, id))?;
            sums.of_page(crawl.key, finish);
            sums.ended(crawl.key, finish.claim.url.as_str(), end, finish.bytes);
            crawls.insert(crawl.key, &finish.claim.crawl);
        }
        ended.push(finished != Finished::NotHeld);
    }
    sums.write(db)?;
    for (key, crawl) in crawls {
        end_the_rest(db, memory, crawl)?;
        end_if_complete(db, memory, key)?;
    }
    Ok(ended)
}

/// Deletes the record of a URL that has ended, and notes what its end means for later.
fn end(
    db: &Connection,
    memory: &mut Memory,
    (address, finish): (&Address, &Finish),
    end: End,
    (crawl, id): (i64, i64),
) -> Result<()> {
    records::delete(db, id)?;
    memory.hands.forget(id);
    memory.requests.note_in_adhoc(address);
    if let Some(landed) = &finish.landed {
        let landed = Address::new(&finish.claim.crawl, landed);
        memory.requests.note_in_adhoc(&landed);
        records::mark_seen(db, &mut memory.seen, crawl, &landed)?;
    }
    if end.is_listed() {
        failures::add(db, crawl, finish)?;
    }
    if end.stays_seen { memory.seen.add_for_spider(db, address, id) } else { seen::leave(db, crawl, id) }
}

/// What is left in a crawl ends, if it is cancelled, or has done as many pages as it may.
pub(super) fn end_the_rest(db: &Connection, memory: &mut Memory, crawl: &CrawlRef) -> Result<()> {
    let Some(crawl) = crawls::find(db, crawl)? else { return Ok(()) };
    let Some(end) = context(memory, &crawl).end_of_rest() else { return Ok(()) };
    seen::leave_all(db, crawl.key)?;
    let mut sums = Sums::default();
    records::delete_all(db, crawl.key, |id, url| {
        memory.hands.forget(id);
        sums.ended(crawl.key, url, end, 0);
    })?;
    sums.write(db)
}

/// Whether a URL is pending, or has ended.
pub(super) fn has_seen(db: &Connection, memory: &mut Memory, address: &Address) -> Result<bool> {
    if address.crawl.is_adhoc() {
        return Ok(memory.requests.state(address) == UrlState::Ended);
    }
    Ok(memory.seen.find(db, address)?.is_some())
}

/// What nobody keeps any more is available again, and the discovery of producers that died has ended.
pub(super) fn sweep(db: &Connection, memory: &mut Memory) -> Result<()> {
    for crawl in memory.leases.lapsed() {
        if let Some(crawl) = crawls::find(db, &crawl)? {
            crawls::end_discovery(db, crawl.key)?;
            end_if_complete(db, memory, crawl.key)?;
        }
    }
    let (now, possession) = (UnixMs::now(), memory.patience / 4);
    let lapsed: Vec<_> =
        memory.hands.all(now).filter(|(_, _, state)| state.has_lapsed(now, possession)).collect();
    for (id, lane, _) in lapsed {
        memory.let_go(id, lane);
    }
    Ok(())
}

//! Transitions of URLs that a worker continues, run inside the store.
//!
//! Each call reads the record, asks the rules (`trawl_common::frontier`) for its next state, and writes that.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tracing::info;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::{Context, PagesLeft, Record, StartReply, State, UrlState};
use trawl_common::names::WorkerId;
use trawl_common::time::UnixMs;

use crate::embedded::crawls::{Crawl, Crawls};
use crate::embedded::records;
use crate::embedded::records::address::Address;
use crate::embedded::records::holdings::Holder;
use crate::embedded::store::Memory;
use crate::embedded::store::error::Result;

/// Returns the context for transitions of a crawl's URLs.
pub(crate) fn context(memory: &Memory, crawl: &Crawl) -> Context {
    let pages_left = |left| PagesLeft { left, begun: memory.holdings.begun_of(crawl.key) };
    Context {
        now: UnixMs::now(),
        // Nothing is lost here, no message waits beside its record, and a file forgets nothing.
        lost_after: Duration::ZERO,
        pause_wait: Duration::ZERO,
        is_recovering: false,
        status: crawl.status,
        pages_left: crawl.pages_left().map(pages_left),
    }
}

/// A URL with the context of its transitions.
pub(crate) struct Found {
    pub(crate) crawl: Rc<Crawl>,
    /// The row of its record, in this crawl or another, if it has one.
    pub(crate) id: Option<i64>,
    pub(crate) url: UrlState,
    pub(crate) context: Context,
}

/// Returns the URL at `address`; `None` if there is no such crawl.
pub(crate) fn find(
    db: &Connection,
    memory: &mut Memory,
    crawls: &mut Crawls,
    address: &Address,
) -> Result<Option<Found>> {
    let Some(crawl) = crawls.find(db, &address.crawl)? else { return Ok(None) };
    let context = context(memory, &crawl);
    let (id, url) = records::find(db, &mut memory.seen, &memory.holdings, &crawl, address, context.now)?;
    Ok(Some(Found { crawl, id, url, context }))
}

impl Found {
    /// Applies a transition that ends nothing, and writes its changes; for a URL that is parked also the state in
    /// `message`.
    fn change<T>(
        mut self,
        db: &Connection,
        memory: &mut Memory,
        message: Option<&Message>,
        rule: impl FnOnce(&mut UrlState, &Context) -> T,
    ) -> Result<T> {
        let before = self.url.clone();
        let outcome = rule(&mut self.url, &self.context);
        if let (UrlState::Pending(before), UrlState::Pending(after), Some(id)) = (&before, &self.url, self.id)
            && before != after
        {
            memory.holdings.set_begun(id, self.crawl.key, after.has_begun);
            write(db, memory, id, after, message)?;
        }
        Ok(outcome)
    }
}

/// Writes the result of a transition of a record that a worker held.
fn write(
    db: &Connection,
    memory: &mut Memory,
    id: i64,
    record: &Record,
    message: Option<&Message>,
) -> Result<()> {
    match (&record.state, message) {
        (State::Held { has_started: true, .. }, _) => {
            memory.holdings.start(id);
            return records::update(db, id, record);
        }
        // The holder is kept only in memory.
        (State::Held { has_started: false, .. }, _) => return Ok(()),
        (State::Parked { until, .. }, Some(message)) => records::park(db, id, record, *until, message)?,
        _ => records::update(db, id, record)?,
    }
    memory.let_go(id, record.lane);
    Ok(())
}

/// Returns, in order, whether a worker still holds each of these URLs.
pub(crate) fn extend(
    db: &Connection,
    memory: &mut Memory,
    worker: &WorkerId,
    urls: &[(Address, Message)],
) -> Result<Vec<bool>> {
    let mut crawls = Crawls::default();
    let mut held = Vec::with_capacity(urls.len());
    for (address, message) in urls {
        held.push(match find(db, memory, &mut crawls, address)? {
            // A URL that is not in the file is held by nobody.
            Some(found) if found.id.is_some() => {
                found.change(db, memory, None, |url, context| url.extend(worker, message, context))?
            }
            Some(_) | None => false,
        });
    }
    Ok(held)
}

/// Starts fetches, unless their crawl is paused: then the URLs wait with the others.
pub(crate) fn start(
    db: &Connection,
    memory: &mut Memory,
    worker: &WorkerId,
    urls: &[Address],
) -> Result<Vec<StartReply>> {
    let mut crawls = Crawls::default();
    let mut starts = Vec::with_capacity(urls.len());
    for address in urls {
        starts.push(match find(db, memory, &mut crawls, address)? {
            Some(found) => found.change(db, memory, None, |url, context| url.start(worker, context))?,
            None => StartReply::Lost,
        });
    }
    Ok(starts)
}

/// Parks a URL until an instant, if its worker holds it. `message` is the one that comes back then.
pub(crate) fn park(
    db: &Connection,
    memory: &mut Memory,
    crawls: &mut Crawls,
    worker: &WorkerId,
    (address, message): (&Address, &Message),
    (until, failed): (UnixMs, bool),
) -> Result<()> {
    let Some(found) = find(db, memory, crawls, address)? else { return Ok(()) };
    found.change(db, memory, Some(message), |url, context| url.park(worker, until, failed, context))?;
    Ok(())
}

/// Returns a URL to its lane, if its worker holds it.
pub(crate) fn give_back(
    db: &Connection,
    memory: &mut Memory,
    crawls: &mut Crawls,
    worker: &WorkerId,
    address: &Address,
) -> Result<()> {
    let Some(found) = find(db, memory, crawls, address)? else { return Ok(()) };
    found.change(db, memory, None, |url, context| url.release(worker, context))
}

/// Signs a worker off, and returns everything that it holds to its lanes.
pub(crate) fn leave(db: &Connection, memory: &mut Memory, holder: &Arc<Holder>) -> Result<()> {
    holder.leave();
    let held = memory.holdings.of(holder);
    if held.is_empty() {
        return Ok(());
    }
    info!(urls = held.len(), "giving back what did not finish in time");
    let mut crawls = Crawls::default();
    for (id, _) in held {
        let crawl = crawls.at(db, records::crawl_of(db, id)?)?;
        let context = context(memory, &crawl);
        let Some(record) = records::read(db, &memory.holdings, id, &crawl, context.now)? else { continue };
        let found = Found { crawl, id: Some(id), url: UrlState::Pending(record), context };
        found.change(db, memory, None, |url, context| url.release(&holder.worker, context))?;
    }
    Ok(())
}

/// Handles a worker that is gone without signing off: everything that it held becomes available, and its starts
/// had no end.
pub(crate) fn lose(memory: &mut Memory, holder: &Arc<Holder>) {
    holder.leave();
    for (id, lane) in memory.holdings.of(holder) {
        memory.let_go(id, lane);
    }
}

//! Claiming records for a worker, run inside the store.

use std::sync::Arc;

use rusqlite::Connection;
use trawl_common::frontier::ClaimReply;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::metrics;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Claimed, OpenCrawl};
use trawl_common::time::UnixMs;

use crate::embedded::crawls::Crawls;
use crate::embedded::records::corrupt::quarantine;
use crate::embedded::records::holdings::Holder;
use crate::embedded::records::{self, Stored, Unreadable};
use crate::embedded::settle::transitions::context;
use crate::embedded::store::Memory;
use crate::embedded::store::error::{Result, unless_corrupt};

/// The request of a worker for records.
pub(crate) struct Want {
    /// The worker.
    pub(crate) holder: Arc<Holder>,
    /// The queues that it takes from.
    pub(crate) sources: &'static [SourceQueue],
    /// Maximum number of records of each queue that it may hold.
    pub(crate) prefetch: usize,
    /// Maximum number that it takes now.
    pub(crate) max: usize,
}

/// The records that a worker gets.
#[derive(Default)]
pub(crate) struct Got {
    /// The claimed records, in the order of [`SourceQueue`].
    pub(crate) claims: Vec<Claim>,
    /// The time when the next parked record is due, if nothing was claimed.
    pub(crate) next_due: Option<UnixMs>,
}

/// A record claimed by a worker.
pub(crate) struct Claim {
    stored: Stored,
    reply: ClaimReply,
    of: CrawlRef,
    crawl: OpenCrawl,
}

impl Claim {
    /// Returns the claim for the worker, if the record's texts can be read.
    pub(crate) fn claimed(self) -> std::result::Result<Claimed, Unreadable> {
        let Self { stored, reply, of, crawl } = self;
        let (attempts, starts, deadline) = match reply {
            ClaimReply::Take { attempts, starts, deadline } => (attempts, starts, deadline),
            _ => (0, 0, None),
        };
        let is_beyond_limit = reply == ClaimReply::Full;
        Ok(Claimed { message: stored.message(of, deadline)?, attempts, starts, is_beyond_limit, crawl })
    }
}

/// Claims the records that are available now: parked ones that are due, then lane by lane. The holder of each is
/// kept only in memory.
pub(crate) fn claim(db: &Connection, memory: &mut Memory, want: &Want) -> Result<Got> {
    let (now, mut got, mut crawls) = (UnixMs::now(), Got::default(), Crawls::default());
    if want.holder.has_left() {
        return Ok(got);
    }
    for &source in want.sources {
        while claim_of(db, memory, want, source, now, (&mut crawls, &mut got))? {}
    }
    if got.claims.is_empty() {
        got.next_due = records::next_due(db, now, want.sources.contains(&SourceQueue::Task))?;
    }
    Ok(got)
}

/// Claims the available records of one queue. Records that cannot be read are removed; returns whether there were
/// any, because more records may follow them.
fn claim_of(
    db: &Connection,
    memory: &mut Memory,
    Want { holder, prefetch, max, .. }: &Want,
    source: SourceQueue,
    now: UnixMs,
    (crawls, got): (&mut Crawls, &mut Got),
) -> Result<bool> {
    let room = prefetch.saturating_sub(holder.holds_of(source)).min(max - got.claims.len());
    if room == 0 {
        return Ok(false);
    }
    let mut is_cleared = false;
    for found in memory.dispatch.next(db, &memory.holdings, source, now, room)? {
        let of = match &found {
            Ok(stored) => stored.crawl,
            Err(unreadable) => unreadable.crawl,
        };
        let Some(crawl) = unless_corrupt(crawls.at(db, of))? else {
            memory.dispatch.pass_over(of);
            is_cleared = true;
            continue;
        };
        let found = match found {
            Ok(stored) => stored.if_seen(db, &mut memory.seen, &crawl.crawl)?,
            unreadable => unreadable,
        };
        let stored = match found {
            Ok(stored) => stored,
            Err(unreadable) => {
                quarantine(db, memory, &unreadable)?;
                is_cleared = true;
                continue;
            }
        };
        let stored = stored.with_request(db)?;
        let mut record = stored.record(&memory.holdings);
        let reply = record.claim(&holder.worker, stored.due, &context(memory, &crawl));
        // Any other reply means that the record is not available.
        if let ClaimReply::Take { .. } | ClaimReply::Full = reply {
            if let Some(due) = stored.due {
                metrics::claimed_after(now.since(due));
            }
            memory.holdings.give(stored.id, (source, stored.lane), holder);
            let (of, crawl) = (crawl.crawl.clone(), OpenCrawl { terms: crawl.terms, started: crawl.started });
            got.claims.push(Claim { stored, reply, of, crawl });
        }
    }
    Ok(is_cleared)
}

//! Which records a worker gets, as it runs inside the store.

use std::sync::Arc;

use rusqlite::Connection;
use trawl_common::frontier::ClaimReply;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::metrics;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Claimed, OpenCrawl};
use trawl_common::time::UnixMs;

use super::corrupt::quarantine;
use super::crawls::Crawls;
use super::error::{Result, unless_corrupt};
use super::holdings::Holder;
use super::records::{self, Stored, Unreadable};
use super::store::Memory;
use super::transitions::context;

/// What a worker asks for.
pub(super) struct Want {
    /// Who asks.
    pub(super) holder: Arc<Holder>,
    /// What it takes from.
    pub(super) lines: &'static [SourceQueue],
    /// How many records of each line it may hold.
    pub(super) prefetch: usize,
    /// How many it takes now.
    pub(super) max: usize,
}

/// What it gets.
#[derive(Default)]
pub(super) struct Got {
    /// What is its own now, in the order of [`SourceQueue`].
    pub(super) claims: Vec<Claim>,
    /// With none: when the next record comes back that was put aside.
    pub(super) next_due: Option<UnixMs>,
}

/// A record that is a worker's to handle.
pub(super) struct Claim {
    stored: Stored,
    reply: ClaimReply,
    of: CrawlRef,
    crawl: OpenCrawl,
}

impl Claim {
    /// What the worker is given, if the record's texts can be read.
    pub(super) fn claimed(self) -> std::result::Result<Claimed, Unreadable> {
        let Self { stored, reply, of, crawl } = self;
        let (attempts, starts, deadline) = match reply {
            ClaimReply::Take { attempts, starts, deadline } => (attempts, starts, deadline),
            _ => (0, 0, None),
        };
        let is_beyond_limit = reply == ClaimReply::Full;
        Ok(Claimed { message: stored.message(of, deadline)?, attempts, starts, is_beyond_limit, crawl })
    }
}

/// Hands out what is available now: what was put aside and is due, then lane by lane. Who holds it is noted in memory alone.
pub(super) fn claim(db: &Connection, memory: &mut Memory, want: &Want) -> Result<Got> {
    let (now, mut got, mut crawls) = (UnixMs::now(), Got::default(), Crawls::default());
    if want.holder.has_left() {
        return Ok(got);
    }
    for &line in want.lines {
        while claim_of(db, memory, want, line, now, (&mut crawls, &mut got))? {}
    }
    if got.claims.is_empty() {
        got.next_due = records::next_due(db, now, want.lines.contains(&SourceQueue::Task))?;
    }
    Ok(got)
}

/// Hands out what is available of one line. What cannot be read is taken out of the way; returns whether anything was, so that there
/// may be more behind it.
fn claim_of(
    db: &Connection,
    memory: &mut Memory,
    Want { holder, prefetch, max, .. }: &Want,
    line: SourceQueue,
    now: UnixMs,
    (crawls, got): (&mut Crawls, &mut Got),
) -> Result<bool> {
    let room = prefetch.saturating_sub(holder.holds_of(line)).min(max - got.claims.len());
    if room == 0 {
        return Ok(false);
    }
    let mut is_cleared = false;
    for found in memory.dispatch.next(db, &memory.holdings, line, now, room)? {
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
        // Whatever else is replied for a record says that it is not available.
        if let ClaimReply::Take { .. } | ClaimReply::Full = reply {
            if let Some(due) = stored.due {
                metrics::claimed_after(now.since(due));
            }
            memory.holdings.give(stored.id, (line, stored.lane), holder);
            let (of, crawl) = (crawl.crawl.clone(), OpenCrawl { terms: crawl.terms, started: crawl.started });
            got.claims.push(Claim { stored, reply, of, crawl });
        }
    }
    Ok(is_cleared)
}

//! Which records a worker gets, as it runs inside the store.

use std::sync::Arc;

use rusqlite::Connection;
use trawl_common::frontier::Heard;
use trawl_common::frontier::line::Line;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Claimed, OpenCrawl};
use trawl_common::time::UnixMs;

use super::crawls::Crawls;
use super::error::Result;
use super::holdings::Holder;
use super::records::{self, Stored};
use super::store::Memory;
use super::transitions::context;

/// What a worker asks for.
pub(super) struct Want {
    /// Who asks.
    pub(super) holder: Arc<Holder>,
    /// How many records of each line it may hold.
    pub(super) prefetch: usize,
    /// How many it takes now.
    pub(super) max: usize,
}

/// What it gets.
#[derive(Default)]
pub(super) struct Got {
    /// What is its own now, in the order of [`Line`].
    pub(super) claims: Vec<Claim>,
    /// With none: when the next record comes back that was put aside.
    pub(super) next_due: Option<UnixMs>,
}

/// A record that is a worker's to handle.
pub(super) struct Claim {
    stored: Stored,
    heard: Heard,
    of: CrawlRef,
    crawl: OpenCrawl,
}

impl Claim {
    /// What the worker is given. `None` if its texts cannot be read, which this program would not have written.
    pub(super) fn claimed(self) -> Result<Claimed> {
        let Self { stored, heard, of, crawl } = self;
        let (attempts, starts, deadline) = match heard {
            Heard::Take { attempts, starts, deadline } => (attempts, starts, deadline),
            _ => (0, 0, None),
        };
        let is_beyond_limit = heard == Heard::Full;
        Ok(Claimed { message: stored.message(of, deadline)?, attempts, starts, is_beyond_limit, crawl })
    }
}

/// Hands out what is available now: what was put aside and is due, then lane by lane. Who holds it is noted in memory alone.
pub(super) fn claim(db: &Connection, memory: &mut Memory, want: &Want) -> Result<Got> {
    let Want { holder, prefetch, max } = want;
    let (now, mut got, mut crawls) = (UnixMs::now(), Got::default(), Crawls::default());
    if holder.has_left() {
        return Ok(got);
    }
    for line in Line::ALL {
        let room = prefetch.saturating_sub(holder.holds_of(line)).min(max - got.claims.len());
        if room == 0 {
            continue;
        }
        for stored in memory.dispatch.next(db, &memory.holdings, line, now, room)? {
            let crawl = crawls.at(db, stored.crawl)?;
            let mut record = stored.record(&memory.holdings, &crawl);
            let heard = record.hear(&holder.worker, stored.due, &context(memory, &crawl));
            // Whatever else is heard of a record says that it is not available.
            if let Heard::Take { .. } | Heard::Full = heard {
                memory.holdings.give(stored.id, (line, stored.lane), holder);
                let (of, crawl) =
                    (crawl.crawl.clone(), OpenCrawl { terms: crawl.terms, started: crawl.started });
                got.claims.push(Claim { stored, heard, of, crawl });
            }
        }
    }
    if got.claims.is_empty() {
        got.next_due = records::next_due(db, now)?;
    }
    Ok(got)
}

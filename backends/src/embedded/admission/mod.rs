//! Admission of URLs, as it runs inside the store: under a lease, or as the links of a page.

pub(crate) mod leases;
pub(crate) mod session;
pub(crate) mod sources;

use rusqlite::Connection;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::judging::Judging;
use trawl_common::frontier::{Taken, UrlState};
use trawl_common::names::CrawlRef;
use trawl_common::ports::{NewWork, SourcesRead, Terms};
use trawl_common::spider::SpiderText;

use crate::embedded::admission::leases::{Lease, Token};
use crate::embedded::crawls::stats_delta::{self, StatsDeltas};
use crate::embedded::crawls::{self, Crawl};
use crate::embedded::records;
use crate::embedded::records::address::Address;
use crate::embedded::settle::ending::end_discovery;
use crate::embedded::settle::transitions::context;
use crate::embedded::store::Memory;
use crate::embedded::store::error::Result;

/// Opens or continues a crawl, with `token` as a lease for it. The text of the spider's file is determined by the first
/// opening, how the result is judged by the last one that says it. Returns the terms of the crawl.
pub(crate) fn open(
    db: &Connection,
    memory: &mut Memory,
    crawl: &CrawlRef,
    terms: &Terms,
    (text, judging): (Option<&SpiderText>, Option<&Judging>),
    (token, reads): (Token, Option<u64>),
) -> Result<Terms> {
    let row = crawls::ensure(db, crawl, terms)?;
    if row.status.is_over() {
        return Err(crawls::over(crawl).into());
    }
    memory.seen.look_again();
    crawls::begin_discovery(db, row.key)?;
    if let Some(text) = text {
        crawls::keep_spider_text(db, row.key, text)?;
    }
    if let Some(judging) = judging {
        crawls::keep_judging(db, row.key, judging)?;
        memory.watched.watch(row.key, judging);
    }
    memory.leases.take(crawl, reads, token)?;
    if let Some(reads) = reads {
        sources::begin(db, row.key, reads)?;
    }
    Ok(row.terms)
}

/// Closes a lease with the result of reading its sources, and ends discovery if it was the last one. Closing again has
/// no effect: an answer may have been lost.
pub(crate) fn close(
    db: &Connection,
    memory: &mut Memory,
    crawl: &CrawlRef,
    token: Token,
    read: Option<&SourcesRead>,
) -> Result<()> {
    let Some(lease) = memory.leases.give_back(token) else {
        let known = crawls::find(db, crawl)?;
        return match known.filter(|known| known.status != CrawlState::Cancelled) {
            Some(_) => Ok(()),
            None => Err(crawls::over(crawl).into()),
        };
    };
    if let Some(known) = crawls::find(db, crawl)? {
        sources::end(db, known.key, lease.sources)?;
        if let Some(read) = read {
            sources::note_read(db, known.key, lease.sources, read)?;
        }
    }
    if memory.leases.is_fed(crawl) { Ok(()) } else { end_discovery(db, memory, crawl) }
}

/// Abandons a lease: the sources that were to be read under it are left for a later run.
pub(crate) fn abandon(db: &Connection, memory: &mut Memory, token: Token) -> Result<()> {
    let Some(Lease { crawl, sources: Some(read), .. }) = memory.leases.give_back(token) else {
        return Ok(());
    };
    match crawls::find(db, &crawl)? {
        Some(known) => {
            sources::end(db, known.key, Some(read))?;
            sources::leave_unread(db, known.key, Some(read))
        }
        None => Ok(()),
    }
}

/// Inserts records for new URLs, available at once. Returns, in order, which were new.
pub(crate) fn admit(
    db: &Connection,
    memory: &mut Memory,
    crawl: &CrawlRef,
    urls: &[(Address, NewWork)],
) -> Result<Vec<bool>> {
    let crawl = crawls::going(db, crawl)?;
    let mut deltas = StatsDeltas::default();
    let taken =
        take_in(db, memory, &crawl, urls.iter().map(|(address, url)| (address, url)), None, &mut deltas)?;
    deltas.write(db)?;
    Ok(taken.into_iter().map(|taken| taken == Taken::New).collect())
}

/// Inserts records for URLs, available at once, up to `most` of each host.
pub(crate) fn take_in<'a>(
    db: &Connection,
    memory: &mut Memory,
    crawl: &Crawl,
    urls: impl Iterator<Item = (&'a Address, &'a NewWork)>,
    most: Option<u64>,
    deltas: &mut StatsDeltas,
) -> Result<Vec<Taken>> {
    let context = context(memory, crawl);
    let mut all = Vec::new();
    for (address, new) in urls {
        // Whether a seen URL has ended does not matter here.
        let seen = memory.seen.find(db, address)?;
        let mut state = seen.map_or(UrlState::Unseen, |_| UrlState::Ended);
        let url = new.work.as_str();
        let has_space = match most {
            Some(most) if seen.is_none() && new.work.page().is_some() => {
                let written = stats_delta::admitted_of_host(db, crawl.key, url)?;
                written + deltas.admitted_of_host(crawl.key, url) < most
            }
            Some(_) | None => true,
        };
        let taken = state.admit(new.lane, new.deadline, has_space, &context);
        if taken == Taken::New {
            records::insert(db, &mut memory.seen, crawl, address, new)?;
            deltas.admitted(crawl.key, url);
        }
        all.push(taken);
    }
    memory.dispatch.stir();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use trawl_common::ports::{ErrorKind, Result};

    use super::*;
    use crate::embedded::crawls::commands;
    use crate::embedded::store::schema;

    fn crawl() -> CrawlRef {
        CrawlRef { id: "c1".parse().expect("a name"), spider: "s1".parse().expect("a name") }
    }

    /// Returns a state with a crawl that the sessions of these tokens feed.
    fn fed_by(tokens: &[Token]) -> Result<(schema::State, Memory)> {
        let (state, mut memory) = (schema::in_memory()?, Memory::default());
        for token in tokens {
            open(&state.db, &mut memory, &crawl(), &Terms::default(), (None, None), (*token, None))?;
        }
        Ok((state, memory))
    }

    #[test]
    fn to_close_twice_is_to_close_once_though_the_crawl_is_finished_by_that() -> Result<()> {
        let (state, mut memory) = fed_by(&[1, 2])?;
        let status = || crawls::going(&state.db, &crawl()).map(|crawl| crawl.status);
        for _ in 0..2 {
            close(&state.db, &mut memory, &crawl(), 1, None)?;
            assert_eq!(status()?, CrawlState::Running, "the other still reads");
        }
        for _ in 0..2 {
            close(&state.db, &mut memory, &crawl(), 2, None)?;
            assert!(
                crawls::find(&state.db, &crawl())?.is_some_and(|crawl| crawl.status == CrawlState::Finished)
            );
        }
        Ok(())
    }

    #[test]
    fn whose_crawl_was_cancelled_is_told_so_when_it_closes() -> Result<()> {
        let (state, mut memory) = fed_by(&[1])?;
        commands::cancel(&state.db, &mut memory, &crawl())?;
        let refused =
            close(&state.db, &mut memory, &crawl(), 1, None).map_err(trawl_common::ports::Error::from);
        assert_eq!(refused.map_err(|error| error.kind), Err(ErrorKind::Stale));
        Ok(())
    }
}

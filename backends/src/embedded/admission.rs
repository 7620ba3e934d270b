//! How URLs get in, as it runs inside the store: under a lease, or as what a page links to.

use rusqlite::Connection;
use trawl_common::frontier::{Taken, UrlState};
use trawl_common::names::CrawlRef;
use trawl_common::ports::{NewUrl, Terms};

use super::books::{self, Sums};
use super::crawls::{self, Crawl};
use super::ending::end_if_complete;
use super::error::Result;
use super::leases::Token;
use super::records::{self, Address};
use super::store::Memory;
use super::transitions::context;

/// A crawl begins, or goes on, and `token` is a lease for it. Returns what it is bound to.
pub(super) fn open(
    db: &Connection,
    memory: &mut Memory,
    crawl: &CrawlRef,
    terms: &Terms,
    token: Token,
) -> Result<Terms> {
    let row = crawls::ensure(db, crawl, terms)?;
    if row.status.is_over() {
        return Err(crawls::over(crawl).into());
    }
    memory.seen.look_again();
    crawls::begin_discovery(db, row.key)?;
    memory.leases.take(crawl, token)?;
    Ok(row.terms)
}

/// A lease is given back, and discovery ends if it was the last.
pub(super) fn close(db: &Connection, memory: &mut Memory, crawl: &CrawlRef, token: Token) -> Result<()> {
    let row = crawls::going(db, crawl)?;
    memory.leases.give_back(crawl, token);
    if memory.leases.is_fed(crawl) {
        return Ok(());
    }
    crawls::end_discovery(db, row.key)?;
    end_if_complete(db, memory, row.key)
}

/// New URLs become records, available at once. Returns, in order, which were new.
pub(super) fn admit(
    db: &Connection,
    memory: &mut Memory,
    crawl: &CrawlRef,
    urls: &[(Address, NewUrl)],
) -> Result<Vec<bool>> {
    let crawl = crawls::going(db, crawl)?;
    let mut sums = Sums::default();
    let taken =
        take_in(db, memory, &crawl, urls.iter().map(|(address, url)| (address, url)), None, &mut sums)?;
    sums.write(db)?;
    Ok(taken.into_iter().map(|taken| taken == Taken::New).collect())
}

/// URLs become records, available at once, up to `most` of each host.
pub(super) fn take_in<'a>(
    db: &Connection,
    memory: &mut Memory,
    crawl: &Crawl,
    urls: impl Iterator<Item = (&'a Address, &'a NewUrl)>,
    most: Option<u64>,
    sums: &mut Sums,
) -> Result<Vec<Taken>> {
    let context = context(memory, crawl);
    let mut all = Vec::new();
    for (address, new) in urls {
        // Whether what was seen has ended is not asked here.
        let seen = memory.seen.find(db, address)?;
        let mut state = seen.map_or(UrlState::Unseen, |_| UrlState::Ended);
        let url = new.url.as_str();
        let has_room = match most {
            Some(most) if seen.is_none() => {
                let written = books::admitted_of_host(db, crawl.key, url)?;
                written + sums.admitted_of_host(crawl.key, url) < most
            }
            Some(_) | None => true,
        };
        let taken = state.admit(new.lane, new.deadline, has_room, &context);
        if taken == Taken::New {
            records::insert(db, &mut memory.seen, crawl, address, new)?;
            sums.admitted(crawl.key, url);
        }
        all.push(taken);
    }
    memory.dispatch.stir();
    Ok(all)
}

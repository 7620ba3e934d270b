//! Writing the outcomes of URLs in one transaction.

pub(crate) mod ending;
pub(crate) mod transitions;

use std::num::NonZeroU64;

use rusqlite::Connection;
use trawl_common::frontier::limit::Limit;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::{Finished, Taken};
use trawl_common::names::{CrawlRef, SpiderName, WorkerId};
use trawl_common::ports::{Completion, Disposition, NewWork, Settled, Settlement, Terms};
use trawl_common::time::UnixMs;

use crate::embedded::admission::take_in;
use crate::embedded::crawls::stats_delta::StatsDeltas;
use crate::embedded::crawls::{self, Crawls, quality};
use crate::embedded::pages::{self, Remembered};
use crate::embedded::records::address::Address;
use crate::embedded::settle::ending::{end, end_if_complete, end_the_rest};
use crate::embedded::settle::transitions::{Found, find, give_back, park};
use crate::embedded::store::Memory;
use crate::embedded::store::error::Result;

/// The settlements of a worker, with the addresses of their URLs.
#[derive(Clone)]
pub(crate) struct Batch(Vec<Item>);

#[derive(Clone)]
struct Item {
    address: Address,
    /// The addresses of the page's links.
    links: Vec<Address>,
    /// The addresses of work for other spiders.
    elsewhere: Vec<Address>,
    settlement: Settlement,
}

/// The results for the links of a URL that has ended; `None` if it goes on, or its worker no longer holds it.
type Ended = Option<Vec<Taken>>;

impl Batch {
    /// Does everything that can be done outside the store's thread.
    pub(crate) fn new(settlements: Vec<Settlement>) -> Self {
        Self(settlements.into_iter().map(Item::new).collect())
    }

    /// Settles the batch. Returns, in order, the ended ones.
    ///
    /// 1. Ends each URL, after its page's links are admitted, or parks it, or gives it back.
    /// 2. Counts all that, ends the crawls that can end, and pauses those that yield too little.
    /// 3. Stores the page history of the ended URLs.
    pub(crate) fn settle(
        &self,
        db: &Connection,
        memory: &mut Memory,
        worker: &WorkerId,
    ) -> Result<Vec<Ended>> {
        let mut settling =
            Settling { db, memory, worker, crawls: Crawls::default(), deltas: StatsDeltas::default() };
        let ended = self.0.iter().map(|item| settling.take(item)).collect::<Result<Vec<Ended>>>()?;
        settling.count()?;
        let endings = self.0.iter().zip(&ended);
        let remembered = endings.filter_map(|(item, ended)| item.remembered(ended.as_deref()?));
        pages::remember(db, &remembered.collect::<Vec<_>>())?;
        Ok(ended)
    }

    /// Returns the result for the worker.
    pub(crate) fn settled(self, ended: Vec<Ended>) -> Settled {
        let ended = self.0.into_iter().zip(ended).filter_map(|(item, ended)| {
            let Disposition::Finish(mut completion) = item.settlement.disposition else { return None };
            let taken = ended?;
            completion.finish.left_out.add(Limit::MaxPerHost, left_out(&taken));
            let mut taken = taken.into_iter();
            completion.links.retain(|_| taken.next().is_some_and(|taken| taken != Taken::LeftOut));
            Some(*completion)
        });
        Settled { ended: ended.collect(), not_stored: Vec::new() }
    }
}

impl Item {
    fn new(Settlement { message, mut disposition }: Settlement) -> Self {
        if let Disposition::Finish(completion) = &mut disposition {
            completion.count_handed();
        }
        let crawl = &message.crawl;
        let links = match &disposition {
            Disposition::Finish(completion) => {
                completion.links.iter().map(|link| Address::new(crawl, link.work.as_str())).collect()
            }
            _ => Vec::new(),
        };
        let elsewhere = match &disposition {
            Disposition::Finish(completion) => completion.elsewhere.iter().map(address_elsewhere).collect(),
            _ => Vec::new(),
        };
        let address = Address::new(crawl, message.work.as_str());
        let message = match disposition {
            Disposition::Retry { until } => message.retry(until),
            Disposition::Snooze { until } => message.snooze(until),
            _ => message,
        };
        Self { address, links, elsewhere, settlement: Settlement { message, disposition } }
    }

    /// Returns the page history of its page and of those links that the frontier knows.
    fn remembered<'a>(&'a self, taken: &'a [Taken]) -> Option<Remembered<'a>> {
        let Disposition::Finish(completion) = &self.settlement.disposition else { return None };
        let known = completion.links.iter().zip(taken).filter(|(_, taken)| **taken != Taken::LeftOut);
        Some(Remembered {
            spider: &completion.finish.claim.crawl.spider,
            url: completion.finish.claim.key.url()?,
            memory: completion.memory.as_ref()?,
            links: known.map(|(link, _)| link).collect(),
        })
    }
}

/// Returns the address of work for another spider: in that spider's ad-hoc crawl.
fn address_elsewhere((spider, new): &(SpiderName, NewWork)) -> Address {
    Address::new(&CrawlRef::adhoc_of(spider.clone()), new.work.as_str())
}

fn left_out(taken: &[Taken]) -> u64 {
    taken.iter().filter(|taken| **taken == Taken::LeftOut).count() as u64
}

/// A batch that is being written into the file.
struct Settling<'a> {
    db: &'a Connection,
    memory: &'a mut Memory,
    worker: &'a WorkerId,
    crawls: Crawls,
    deltas: StatsDeltas,
}

impl Settling<'_> {
    fn take(&mut self, item: &Item) -> Result<Ended> {
        let Item { address, settlement: Settlement { message, disposition }, .. } = item;
        match disposition {
            Disposition::Finish(completion) => return self.end(item, completion),
            Disposition::Retry { until } => self.park(address, message, *until, true)?,
            Disposition::Snooze { until } | Disposition::Requeue { until } => {
                self.park(address, message, *until, false)?;
            }
            // The record is found in its row: there is no message to send.
            Disposition::Republish | Disposition::Release => {
                give_back(self.db, self.memory, &mut self.crawls, self.worker, address)?;
            }
        }
        Ok(None)
    }

    fn park(&mut self, address: &Address, message: &Message, until: UnixMs, failed: bool) -> Result<()> {
        let Self { db, memory, worker, crawls, .. } = self;
        park(db, memory, crawls, worker, (address, message), (until, failed))
    }

    /// Admits the links of a page before the page ends, so that its crawl does not end between the two.
    fn end(
        &mut self,
        Item { address, links, elsewhere, .. }: &Item,
        completion: &Completion,
    ) -> Result<Ended> {
        let Self { db, memory, worker, crawls, deltas } = self;
        let Some(found) = find(db, memory, crawls, address)? else { return Ok(None) };
        let Found { crawl, id, mut url, mut context } = found;
        let mut taken = Vec::new();
        if !links.is_empty() && url.takes_links(worker, &context) {
            let most = crawl.terms.max_per_host.map(NonZeroU64::get);
            taken = take_in(db, memory, &crawl, links.iter().zip(&completion.links), most, deltas)?;
        }
        if url.takes_links(worker, &context) {
            for (address, (_, new)) in elsewhere.iter().zip(&completion.elsewhere) {
                let of = crawls::ensure(db, &address.crawl, &Terms::default())?;
                take_in(db, memory, &of, std::iter::once((address, new)), None, deltas)?;
            }
        }
        if let Some(pages_left) = &mut context.pages_left {
            pages_left.left = pages_left.left.saturating_sub(deltas.done(crawl.key));
        }
        let finish = &completion.finish;
        match (url.finish(worker, finish.terminal, finish.why, &context), id) {
            (Finished::Now(ended), Some(id)) => {
                end(db, memory, (address, finish), ended, (crawl.key, id))?;
                deltas.of_page(crawl.key, finish, left_out(&taken));
                deltas.ended(crawl.key, finish.claim.key.as_str(), ended, finish.bytes);
                Ok(Some(taken))
            }
            (Finished::NotHeld, _) => Ok(None),
            (Finished::Before | Finished::Now(_), _) => Ok(Some(taken)),
        }
    }

    fn count(self) -> Result<()> {
        let Self { db, memory, deltas, .. } = self;
        for crawl in deltas.write(db)? {
            end_the_rest(db, memory, crawl)?;
            end_if_complete(db, memory, crawl)?;
            quality::look(db, memory, crawl)?;
        }
        Ok(())
    }
}

//! Discovery leases: sessions that admit URLs for a spider, all to one crawl at a time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::ports::{Error, ErrorKind, Result};

/// What names a lease.
pub(super) type Token = u64;

/// The leases of all spiders. Each lives as long as its session, and ends with its process: the file's lock proves that it is
/// gone.
#[derive(Default)]
pub(super) struct Leases(HashMap<SpiderName, Vec<Lease>>);

struct Lease {
    crawl: CrawlRef,
    token: Token,
    /// When it lapses, because its session was neither closed nor abandoned.
    until: Option<Instant>,
}

impl Lease {
    fn is_held(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| until > now)
    }
}

impl Leases {
    /// Takes a lease beside those of others who read sources for the same crawl. `Busy` while someone reads for another crawl of
    /// the spider.
    pub(super) fn take(&mut self, crawl: &CrawlRef, token: Token) -> Result<()> {
        let now = Instant::now();
        let leases = self.0.entry(crawl.spider.clone()).or_default();
        if let Some(other) = leases.iter().find(|lease| lease.is_held(now) && lease.crawl != *crawl) {
            return Err(busy(&other.crawl));
        }
        leases.retain(|lease| lease.token != token);
        leases.push(Lease { crawl: crawl.clone(), token, until: None });
        Ok(())
    }

    /// Ends one lease.
    pub(super) fn give_back(&mut self, crawl: &CrawlRef, token: Token) {
        if let Some(leases) = self.0.get_mut(&crawl.spider) {
            leases.retain(|lease| lease.token != token);
        }
    }

    /// Has a lease lapse after `ttl`: its session was dropped.
    pub(super) fn lapse(&mut self, crawl: &CrawlRef, token: Token, ttl: Duration) {
        let leases = self.0.get_mut(&crawl.spider).into_iter().flatten();
        for lease in leases.filter(|lease| lease.token == token) {
            lease.until = Some(Instant::now() + ttl);
        }
    }

    /// Whether someone reads sources for `crawl`.
    pub(super) fn is_fed(&self, crawl: &CrawlRef) -> bool {
        let now = Instant::now();
        let mut leases = self.0.get(&crawl.spider).into_iter().flatten();
        leases.any(|lease| lease.crawl == *crawl && lease.is_held(now))
    }

    /// Forgets the leases that have lapsed. Returns the crawls that nobody reads sources for any more by that.
    pub(super) fn take_lapsed(&mut self) -> Vec<CrawlRef> {
        let now = Instant::now();
        let of_all = self.0.values_mut();
        let lapsed: Vec<Lease> =
            of_all.flat_map(|leases| leases.extract_if(.., |lease| !lease.is_held(now))).collect();
        lapsed.into_iter().map(|lease| lease.crawl).filter(|crawl| !self.is_fed(crawl)).collect()
    }

    /// Ends every lease to read the sources of `crawl`.
    pub(super) fn end(&mut self, crawl: &CrawlRef) {
        if let Some(leases) = self.0.get_mut(&crawl.spider) {
            leases.retain(|lease| lease.crawl != *crawl);
        }
    }
}

fn busy(CrawlRef { id, spider }: &CrawlRef) -> Error {
    Error::new(
        ErrorKind::Busy,
        format_args!("the sources of spider {spider} are being read for crawl {id} in this process"),
    )
}

//! Discovery leases: sessions that admit URLs for a spider, all to one crawl at a time.

use std::time::{Duration, Instant};

use trawl_common::names::CrawlRef;
use trawl_common::ports::{Error, ErrorKind, Result};

use super::transactional_map::{Savepoint, TransactionalMap};

/// What names a lease.
pub(super) type Token = u64;

/// The leases of all spiders. Each lives as long as its session, and ends with its process: the file's lock proves that it is
/// gone.
#[derive(Default)]
pub(super) struct Leases(TransactionalMap<Token, Lease>);

#[derive(Clone)]
pub(super) struct Lease {
    pub(super) crawl: CrawlRef,
    /// Names the sources that are read under it, if any are.
    pub(super) sources: Option<u64>,
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
    pub(super) fn take(&mut self, crawl: &CrawlRef, sources: Option<u64>, token: Token) -> Result<()> {
        let is_other = |lease: &Lease| lease.crawl.spider == crawl.spider && lease.crawl != *crawl;
        if let Some(other) = self.held().find(|lease| is_other(lease)) {
            return Err(busy(&other.crawl));
        }
        self.0.insert(token, Lease { crawl: crawl.clone(), sources, until: None });
        Ok(())
    }

    /// Ends one lease. Returns it, if there was one.
    pub(super) fn give_back(&mut self, token: Token) -> Option<Lease> {
        let lease = self.0.get(token).cloned();
        self.0.remove(token);
        lease
    }

    /// Has a lease lapse after `ttl`: its session was dropped.
    pub(super) fn lapse(&mut self, token: Token, ttl: Duration) {
        if let Some(lease) = self.0.get(token).cloned() {
            self.0.insert(token, Lease { until: Some(Instant::now() + ttl), ..lease });
        }
    }

    /// Whether someone reads sources for `crawl`.
    pub(super) fn is_fed(&self, crawl: &CrawlRef) -> bool {
        self.held().any(|lease| lease.crawl == *crawl)
    }

    /// Forgets the leases that have lapsed, and returns them.
    pub(super) fn take_lapsed(&mut self) -> Vec<Lease> {
        let now = Instant::now();
        self.take_all(|lease| !lease.is_held(now))
    }

    /// Ends every lease to read the sources of `crawl`.
    pub(super) fn end(&mut self, crawl: &CrawlRef) {
        self.take_all(|lease| lease.crawl == *crawl);
    }

    /// The point where they stand.
    pub(super) fn savepoint(&self) -> Savepoint {
        self.0.savepoint()
    }

    /// Takes back all changes since `savepoint`.
    pub(super) fn roll_back_to(&mut self, savepoint: Savepoint) {
        self.0.roll_back_to(savepoint);
    }

    /// Makes all changes final.
    pub(super) fn commit(&mut self) {
        self.0.commit();
    }

    fn held(&self) -> impl Iterator<Item = &Lease> {
        let now = Instant::now();
        self.0.iter().map(|(_, lease)| lease).filter(move |lease| lease.is_held(now))
    }

    /// Ends the leases of which `is_over` is true, and returns them.
    fn take_all(&mut self, is_over: impl Fn(&Lease) -> bool) -> Vec<Lease> {
        let over = self.0.iter().filter(|(_, lease)| is_over(lease));
        let over: Vec<(Token, Lease)> = over.map(|(token, lease)| (token, lease.clone())).collect();
        over.into_iter()
            .map(|(token, lease)| {
                self.0.remove(token);
                lease
            })
            .collect()
    }
}

fn busy(CrawlRef { id, spider }: &CrawlRef) -> Error {
    Error::new(
        ErrorKind::Busy,
        format_args!("the sources of spider {spider} are being read for crawl {id} in this process"),
    )
}

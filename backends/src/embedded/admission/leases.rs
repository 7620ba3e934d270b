//! Discovery leases: sessions that admit URLs for a spider, all to one crawl at a time.

use std::time::{Duration, Instant};

use trawl_common::names::CrawlRef;
use trawl_common::ports::{Error, ErrorKind, Result};

use crate::embedded::store::transactional_map::{Savepoint, TransactionalMap};

/// Identifies a lease.
pub(crate) type Token = u64;

/// The leases of all spiders. Each lives as long as its session, and at most as long as its process: whoever holds the
/// file's lock knows that the former process is gone.
#[derive(Default)]
pub(crate) struct Leases(TransactionalMap<Token, Lease>);

#[derive(Clone)]
pub(crate) struct Lease {
    pub(crate) crawl: CrawlRef,
    /// Identifies the sources that are read under the lease, if any.
    pub(crate) sources: Option<u64>,
    /// When it lapses, because its session was neither closed nor abandoned.
    until: Option<Instant>,
}

impl Lease {
    fn is_held(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| until > now)
    }
}

impl Leases {
    /// Adds a lease beside those of other sessions that read sources for the same crawl. Fails with `Busy` while a
    /// session reads for another crawl of the spider.
    pub(crate) fn take(&mut self, crawl: &CrawlRef, sources: Option<u64>, token: Token) -> Result<()> {
        let is_other = |lease: &Lease| lease.crawl.spider == crawl.spider && lease.crawl != *crawl;
        if let Some(other) = self.held().find(|lease| is_other(lease)) {
            return Err(busy(&other.crawl));
        }
        self.0.insert(token, Lease { crawl: crawl.clone(), sources, until: None });
        Ok(())
    }

    /// Ends one lease, and returns it if there was one.
    pub(crate) fn give_back(&mut self, token: Token) -> Option<Lease> {
        let lease = self.0.get(token).cloned();
        self.0.remove(token);
        lease
    }

    /// Lets a lease lapse after `ttl`: its session was dropped.
    pub(crate) fn lapse(&mut self, token: Token, ttl: Duration) {
        if let Some(lease) = self.0.get(token).cloned() {
            self.0.insert(token, Lease { until: Some(Instant::now() + ttl), ..lease });
        }
    }

    /// Whether a session reads sources for `crawl`.
    pub(crate) fn is_fed(&self, crawl: &CrawlRef) -> bool {
        self.held().any(|lease| lease.crawl == *crawl)
    }

    /// Removes the lapsed leases, and returns them.
    pub(crate) fn take_lapsed(&mut self) -> Vec<Lease> {
        let now = Instant::now();
        self.take_all(|lease| !lease.is_held(now))
    }

    /// Ends all leases to read the sources of `crawl`.
    pub(crate) fn end(&mut self, crawl: &CrawlRef) {
        self.take_all(|lease| lease.crawl == *crawl);
    }

    /// Returns a savepoint of the current leases.
    pub(crate) fn savepoint(&self) -> Savepoint {
        self.0.savepoint()
    }

    /// Undoes all changes since `savepoint`.
    pub(crate) fn roll_back_to(&mut self, savepoint: Savepoint) {
        self.0.roll_back_to(savepoint);
    }

    /// Makes all changes final.
    pub(crate) fn commit(&mut self) {
        self.0.commit();
    }

    fn held(&self) -> impl Iterator<Item = &Lease> {
        let now = Instant::now();
        self.0.iter().map(|(_, lease)| lease).filter(move |lease| lease.is_held(now))
    }

    /// Removes and returns the leases for which `is_over` is true.
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

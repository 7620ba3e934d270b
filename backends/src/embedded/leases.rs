//! Discovery leases: producers that admit URLs for a spider, all to one crawl at a time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_engine::Lease;

/// The leases of all spiders. A lease ends with its process: the file's lock proves that it is gone.
#[derive(Default)]
pub(super) struct Leases(HashMap<SpiderName, Vec<Held>>);

struct Held {
    crawl: CrawlRef,
    holder: String,
    token: u64,
    until: Instant,
}

impl Leases {
    /// Takes a lease for `holder`, beside those of others who read sources for the same crawl; what proves it. Whoever had
    /// one already has this in its place. `Busy` while someone reads for another crawl of the spider.
    pub(super) fn take(&mut self, crawl: &CrawlRef, holder: String, ttl: Duration) -> Result<u64> {
        let now = Instant::now();
        let leases = self.0.entry(crawl.spider.clone()).or_default();
        if let Some(other) = leases.iter().find(|lease| lease.until > now && lease.crawl != *crawl) {
            return Err(other.busy(now));
        }
        leases.retain(|lease| lease.crawl != *crawl || lease.holder != holder);
        let token = rand::random();
        leases.push(Held { crawl: crawl.clone(), holder, token, until: now + ttl });
        Ok(token)
    }

    /// Prolongs a lease that is held. For no time at all it is given back, and nobody's to end by a sweep.
    pub(super) fn renew(&mut self, lease: &Lease, ttl: Duration) -> Result<()> {
        if ttl.is_zero() {
            self.give_back(lease);
            return Ok(());
        }
        self.check(lease)?;
        if let Some(known) = self.of(lease).find(|known| known.token == lease.token) {
            known.until = Instant::now() + ttl;
        }
        Ok(())
    }

    /// `Stale` unless the lease is held now.
    pub(super) fn check(&mut self, lease: &Lease) -> Result<()> {
        let now = Instant::now();
        let is_held = self.of(lease).any(|known| known.token == lease.token && known.until > now);
        if is_held { Ok(()) } else { Err(stale(&lease.crawl)) }
    }

    /// Ends one lease.
    pub(super) fn give_back(&mut self, lease: &Lease) {
        if let Some(leases) = self.0.get_mut(&lease.crawl.spider) {
            leases.retain(|known| known.token != lease.token);
        }
    }

    /// Whether someone reads sources for `crawl`.
    pub(super) fn is_fed(&self, crawl: &CrawlRef) -> bool {
        let now = Instant::now();
        let leases = self.0.get(&crawl.spider).into_iter().flatten();
        leases.into_iter().any(|lease| lease.crawl == *crawl && lease.until > now)
    }

    /// The crawls that nobody reads sources for any more, although someone did whose lease was not given back. Those leases
    /// are forgotten.
    pub(super) fn lapsed(&mut self) -> Vec<CrawlRef> {
        let now = Instant::now();
        let lapsed: Vec<Held> = self
            .0
            .values_mut()
            .flat_map(|leases| leases.extract_if(.., |lease| lease.until <= now))
            .collect();
        lapsed.into_iter().map(|lease| lease.crawl).filter(|crawl| !self.is_fed(crawl)).collect()
    }

    /// Ends every lease to read the sources of `crawl`.
    pub(super) fn end(&mut self, crawl: &CrawlRef) {
        if let Some(leases) = self.0.get_mut(&crawl.spider) {
            leases.retain(|lease| lease.crawl != *crawl);
        }
    }

    fn of(&mut self, lease: &Lease) -> impl Iterator<Item = &mut Held> {
        self.0.get_mut(&lease.crawl.spider).into_iter().flatten()
    }
}

impl Held {
    fn busy(&self, now: Instant) -> Error {
        let Self { holder, crawl, .. } = self;
        let seconds = self.until.duration_since(now).as_secs_f64();
        Error::new(
            ErrorKind::Busy,
            format_args!(
                "{holder} reads the sources of spider {} for crawl {}; its lease lapses in {seconds:.0} s",
                crawl.spider, crawl.id
            ),
        )
    }
}

/// The error of one who acts on a lease that is no longer held.
pub(super) fn stale(crawl: &CrawlRef) -> Error {
    Error::new(ErrorKind::Stale, format_args!("the discovery lease of crawl {} is no longer held", crawl.id))
}

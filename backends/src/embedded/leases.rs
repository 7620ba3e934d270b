//! Discovery leases: one producer at a time admits URLs for a spider.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::ports::{Discovery, Error, ErrorKind, Result};

/// The leases of all spiders. A lease ends with its process: the file's lock proves that it is gone.
#[derive(Default)]
pub(super) struct Leases(HashMap<SpiderName, Lease>);

struct Lease {
    crawl: CrawlRef,
    holder: String,
    token: u64,
    until: Instant,
}

impl Leases {
    /// Takes the lease of the crawl's spider for `holder`, or `Busy`; what proves it. Its own holder gets the same again.
    pub(super) fn take(&mut self, crawl: &CrawlRef, holder: String, ttl: Duration) -> Result<u64> {
        let now = Instant::now();
        let mut token = rand::random();
        if let Some(lease) = self.0.get(&crawl.spider).filter(|lease| lease.until > now) {
            if lease.holder != holder || lease.crawl != *crawl {
                return Err(lease.busy(now));
            }
            token = lease.token;
        }
        let lease = Lease { crawl: crawl.clone(), holder, token, until: now + ttl };
        self.0.insert(crawl.spider.clone(), lease);
        Ok(token)
    }

    /// Prolongs a lease that is held. For no time at all it is given back, and nobody's to end by a sweep.
    pub(super) fn renew(&mut self, lease: &Discovery, ttl: Duration) -> Result<()> {
        self.check(lease)?;
        if ttl.is_zero() {
            self.0.remove(&lease.crawl.spider);
        } else if let Some(known) = self.0.get_mut(&lease.crawl.spider) {
            known.until = Instant::now() + ttl;
        }
        Ok(())
    }

    /// `Stale` unless the lease is held now.
    pub(super) fn check(&self, lease: &Discovery) -> Result<()> {
        let known = self.0.get(&lease.crawl.spider).filter(|known| known.until > Instant::now());
        if known.is_some_and(|known| known.token == lease.token) { Ok(()) } else { Err(stale(&lease.crawl)) }
    }

    /// Whether nobody has taken the lease from its holder, even if it has lapsed.
    pub(super) fn is_last(&self, lease: &Discovery) -> bool {
        self.0.get(&lease.crawl.spider).is_some_and(|known| known.token == lease.token)
    }

    /// The crawls of leases that lapsed without being given back; these are forgotten.
    pub(super) fn lapsed(&mut self) -> Vec<CrawlRef> {
        let now = Instant::now();
        let lapsed = self.0.extract_if(|_, lease| lease.until <= now);
        lapsed.map(|(_, lease)| lease.crawl).collect()
    }

    /// Ends the lease to read the sources of `crawl`, whoever holds it.
    pub(super) fn end(&mut self, crawl: &CrawlRef) {
        self.0.extract_if(|_, lease| lease.crawl == *crawl).for_each(drop);
    }
}

impl Lease {
    fn busy(&self, now: Instant) -> Error {
        let Self { holder, crawl, .. } = self;
        let seconds = self.until.duration_since(now).as_secs_f64();
        Error::new(
            ErrorKind::Busy,
            format_args!(
                "{holder} is reading the sources of spider {} for crawl {}; its lease lapses in {seconds:.0} s",
                crawl.spider, crawl.id
            ),
        )
    }
}

/// The error of one who acts on a lease that is no longer held.
pub(super) fn stale(crawl: &CrawlRef) -> Error {
    Error::new(ErrorKind::Stale, format_args!("the discovery lease of crawl {} is no longer held", crawl.id))
}

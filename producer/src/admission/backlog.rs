//! The limit of the backlog: nothing is admitted while a spider has too many URLs without a final state, or
//! their records take too many bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tracing::info;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::health::Health;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Backlog as Waiting, Result, Stats};
use trawl_common::settings::Producer;

use super::round_robin::weight;
use crate::finding::Finding;
use crate::report::Progress;

/// The number of URLs after which the stats are read again, however far away the limit was. A long task
/// counts as several.
const URLS_PER_CHECK: u64 = 5_000;

/// Interval at which the stats are read while the run waits.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Lets URLs pass while the backlog is below its limit, which it may exceed by one bundle at most.
pub(crate) struct Backlog {
    stats: Arc<dyn Stats>,
    health: Arc<Health>,
    progress: Arc<Progress>,
    /// The spider's open crawls when the run began. No other can begin while the run holds the lease.
    crawls: Vec<CrawlRef>,
    max: Waiting,
    /// The weight of URLs that may pass before the stats are read again.
    allowance: u64,
    on_their_way: Arc<AtomicU64>,
}

impl Backlog {
    /// Returns the backlog of the spider of `crawl`, which is open.
    pub(crate) async fn new(
        crawl: &CrawlRef,
        settings: &Producer,
        stats: Arc<dyn Stats>,
        health: Arc<Health>,
        progress: Arc<Progress>,
    ) -> Result<Self> {
        let open = health.retry("listing the crawls", || stats.open_crawls(&crawl.spider)).await?;
        let mut crawls: Vec<CrawlRef> = open.iter().map(CrawlStats::crawl_ref).collect();
        if !crawls.contains(crawl) {
            crawls.push(crawl.clone());
        }
        let max = Waiting { urls: settings.max_backlog.get(), bytes: settings.max_backlog_bytes.as_u64() };
        Ok(Self { stats, health, progress, crawls, max, allowance: 0, on_their_way: Arc::default() })
    }

    /// Returns the number of URLs that have passed and are not in the stats yet; the caller lowers it when
    /// they are.
    pub(crate) fn on_their_way(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.on_their_way)
    }

    /// Waits until the backlog is below its limit, then lets a bundle pass.
    pub(crate) async fn pass(&mut self, bundle: &[Finding]) -> Result<()> {
        if self.allowance == 0 {
            self.await_allowance().await?;
        }
        let weight: usize = bundle.iter().map(weight).sum();
        self.allowance = self.allowance.saturating_sub(weight as u64);
        self.on_their_way.fetch_add(bundle.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    async fn await_allowance(&mut self) -> Result<()> {
        let max = self.max;
        let mut looks = 0_u64;
        loop {
            let Waiting { urls, bytes } = self.waiting().await?;
            if urls < max.urls && bytes < max.bytes {
                if looks > 1 {
                    info!(urls, bytes, "going on: the backlog is below its limit");
                }
                self.progress.waits_for_backlog(None);
                self.allowance = (max.urls - urls).min(URLS_PER_CHECK);
                return Ok(());
            }
            looks += 1;
            // The first time, URLs that were just admitted may be counted twice.
            if looks > 1 {
                self.progress.waits_for_backlog(Some(urls));
            }
            if looks == 2 {
                let (max_urls, max_bytes) = (max.urls, max.bytes);
                info!(
                    urls,
                    max_urls,
                    bytes,
                    max_bytes,
                    "waiting until fewer URLs wait to be fetched (`producer.max_backlog`, `max_backlog_bytes`)"
                );
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Returns the URLs without a final state, including those about to be admitted. A URL admitted in the
    /// meantime may be counted twice; none is missed.
    async fn waiting(&self) -> Result<Waiting> {
        let mut waiting = Waiting { urls: self.on_their_way.load(Ordering::Relaxed), bytes: 0 };
        for crawl in &self.crawls {
            let looking = || self.stats.backlog(crawl);
            let Waiting { urls, bytes } = self.health.retry("looking at the backlog", looking).await?;
            waiting = Waiting { urls: waiting.urls + urls, bytes: waiting.bytes + bytes };
        }
        Ok(waiting)
    }
}

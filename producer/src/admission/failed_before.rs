//! Counts what was seen, and is left out, because it failed for good in an earlier crawl.

use std::collections::HashSet;

use tokio::sync::OnceCell;
use trawl_common::frontier::Key;
use trawl_common::health::Health;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{NewWork, Ports, Result};

/// Maximum number of dead letters that are looked at, those of the newest crawls first: no more is counted.
const MAX_DEAD_LETTERS: usize = 10_000;

/// The URLs and tasks that failed in earlier crawls of the spider, read once something is found that was seen.
pub(crate) struct FailedBefore<'a> {
    ports: &'a Ports,
    health: &'a Health,
    crawl: &'a CrawlRef,
    /// Whether earlier crawls decide what counts as seen.
    matters: bool,
    failed: OnceCell<HashSet<Key>>,
}

impl<'a> FailedBefore<'a> {
    pub(crate) fn new(ports: &'a Ports, health: &'a Health, crawl: &'a CrawlRef, matters: bool) -> Self {
        Self { ports, health, crawl, matters, failed: OnceCell::new() }
    }

    /// Returns how many of these failed in an earlier crawl.
    pub(crate) async fn count(&self, seen: &[&NewWork]) -> Result<usize> {
        if !self.matters || seen.is_empty() {
            return Ok(0);
        }
        let failed = self.failed.get_or_try_init(|| self.read()).await?;
        Ok(seen.iter().filter(|new| failed.contains(&new.work.key())).count())
    }

    async fn read(&self) -> Result<HashSet<Key>> {
        let crawls = self.health.retry("looking at earlier crawls", || self.ports.stats.crawls()).await?;
        let mut failed = HashSet::new();
        let is_earlier = |crawl: &CrawlRef| crawl.spider == self.crawl.spider && crawl.id != self.crawl.id;
        for crawl in crawls.iter().filter(|stats| stats.counts.failed > 0) {
            let crawl = crawl.crawl_ref();
            let mut cursor = Some(0).filter(|_| is_earlier(&crawl));
            while let Some(at) = cursor.filter(|_| failed.len() < MAX_DEAD_LETTERS) {
                let read = || self.ports.control.failed(&crawl, at);
                let page = self.health.retry("looking at what failed before", read).await?;
                failed.extend(page.failed.into_iter().map(|(key, _)| key));
                cursor = page.next;
            }
        }
        Ok(failed)
    }
}

//! Leaves out pages that need not be fetched again.

use std::collections::HashSet;

use parking_lot::Mutex;
use trawl_common::frontier::Recrawl;
use trawl_common::health::Health;
use trawl_common::names::SpiderName;
use trawl_common::ports::{PageHistories, Result};
use trawl_common::time::UnixMs;
use trawl_common::web::url::{CanonicalUrl, Fingerprint};

use crate::finding::Candidate;
use crate::report::Progress;

/// Maximum number of left-out pages to track, some 40 MB: a tracked page that is found again is not counted
/// twice, nor fetched because only its sitemap says when it changed.
const MAX_SPARED: usize = 1_000_000;

/// Leaves out the pages of one run that need not be fetched again.
pub(crate) struct RecrawlFilter<'a> {
    pages: &'a dyn PageHistories,
    health: &'a Health,
    spider: &'a SpiderName,
    recrawl: Recrawl,
    spared: Mutex<HashSet<Fingerprint>>,
}

impl<'a> RecrawlFilter<'a> {
    /// Returns a filter for a crawl of this spider.
    pub(crate) fn new(
        pages: &'a dyn PageHistories,
        health: &'a Health,
        spider: &'a SpiderName,
        recrawl: Recrawl,
    ) -> Self {
        Self { pages, health, spider, recrawl, spared: Mutex::default() }
    }

    /// Removes and counts the pages that need not be fetched again. Tasks and other requests are not
    /// remembered, so all of them are kept.
    pub(crate) async fn sift(&self, found: Vec<Candidate>, progress: &Progress) -> Result<Vec<Candidate>> {
        if !self.recrawl.asks_for_changes() || found.is_empty() {
            return Ok(found);
        }
        let (found, others): (Vec<Candidate>, Vec<Candidate>) =
            found.into_iter().partition(|candidate| candidate.page.work.url().is_some());
        let urls: Vec<CanonicalUrl> =
            found.iter().filter_map(|candidate| candidate.page.work.url().cloned()).collect();
        let looking = || self.pages.look(self.spider, &urls);
        let visits = self.health.retry("looking up what is remembered", looking).await?;
        let now = UnixMs::now();
        let mut spared = self.spared.lock();
        let mut is_due = |candidate: &Candidate, last: Option<UnixMs>| {
            let fingerprint = Fingerprint::from_text(candidate.page.work.as_str());
            if candidate.modified.is_none() && spared.contains(&fingerprint) {
                return false;
            }
            let Some(skip) = self.recrawl.reason_to_skip(last, candidate.modified, now) else { return true };
            progress.spared(skip);
            if spared.len() < MAX_SPARED {
                spared.insert(fingerprint);
            }
            false
        };
        let visited = found.into_iter().zip(visits);
        let due =
            visited.filter(|(candidate, last)| is_due(candidate, last.as_ref().map(|last| last.fetched_at)));
        Ok(due.map(|(candidate, _)| candidate).chain(others).collect())
    }
}

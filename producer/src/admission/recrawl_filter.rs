//! Which pages need not be fetched again.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use trawl_common::health::Health;
use trawl_common::names::SpiderName;
use trawl_common::ports::{Pages, Result};
use trawl_common::spider::Recrawl;
use trawl_common::time::UnixMs;
use trawl_common::web::url::{CanonicalUrl, Fingerprint};

use crate::finding::Candidate;
use crate::report::Progress;

/// So many pages that were left out are known as such, in some 40 MB: one that comes once more is not counted again, nor
/// fetched because it is only its sitemap that says when it changed.
const MAX_SPARED: usize = 1_000_000;

/// What one run looks back at.
pub(crate) struct RecrawlFilter<'a> {
    pages: &'a dyn Pages,
    health: &'a Health,
    spider: &'a SpiderName,
    recrawl: Recrawl,
    spared: Mutex<HashSet<Fingerprint>>,
}

impl<'a> RecrawlFilter<'a> {
    /// For a crawl of this spider.
    pub(crate) fn new(
        pages: &'a dyn Pages,
        health: &'a Health,
        spider: &'a SpiderName,
        recrawl: Recrawl,
    ) -> Self {
        Self { pages, health, spider, recrawl, spared: Mutex::default() }
    }

    /// Leaves out, and counts, what need not be fetched again. Nothing is remembered of tasks and requests: each is done.
    pub(crate) async fn sift(&self, found: Vec<Candidate>, progress: &Progress) -> Result<Vec<Candidate>> {
        if !self.recrawl.asks_for_changes() || found.is_empty() {
            return Ok(found);
        }
        let (found, others): (Vec<Candidate>, Vec<Candidate>) =
            found.into_iter().partition(|candidate| candidate.page.work.url().is_some());
        let urls: Vec<CanonicalUrl> =
            found.iter().filter_map(|candidate| candidate.page.work.url().cloned()).collect();
        let looking = || self.pages.look(self.spider, &urls);
        let visits = self.health.patiently("looking up what is remembered", looking).await?;
        let now = UnixMs::now();
        let mut spared = self.spared.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_due = |candidate: &Candidate, last: Option<UnixMs>| {
            let fingerprint = Fingerprint::of(candidate.page.work.as_str());
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

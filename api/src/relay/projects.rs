//! The projects of crawls.

use std::sync::Arc;

use moka::sync::Cache;
use trawl_common::names::{CrawlRef, ProjectName};
use trawl_common::ports::{Jobs, Result};

/// Maximum number of crawls whose projects are remembered.
const MAX_CRAWLS: u64 = 10_000;

/// The projects of crawls: that of their job, or the default one.
pub(super) struct Projects {
    jobs: Arc<dyn Jobs>,
    known: Cache<CrawlRef, ProjectName>,
}

impl Projects {
    pub(super) fn new(jobs: Arc<dyn Jobs>) -> Self {
        Self { jobs, known: Cache::new(MAX_CRAWLS) }
    }

    /// Returns the project of a crawl.
    pub(super) async fn of(&self, crawl: &CrawlRef) -> Result<ProjectName> {
        if let Some(known) = self.known.get(crawl) {
            return Ok(known);
        }
        let job = if crawl.is_adhoc() { None } else { self.jobs.job(&crawl.id).await? };
        let project = job.map(|job| job.new.project).unwrap_or_default();
        self.known.insert(crawl.clone(), project.clone());
        Ok(project)
    }
}

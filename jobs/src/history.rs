//! Keeps jobs in the history before they are forgotten.

use std::collections::HashSet;

use trawl_common::names::CrawlId;
use trawl_common::ports::{JobFilter, JobPage, Result};

use crate::Runner;

/// The number of jobs read and stored in one step.
const BATCH: usize = 100;

/// The finished jobs that this process has stored in the history.
#[derive(Default)]
pub(crate) struct Kept(HashSet<CrawlId>);

impl Kept {
    /// Stores every finished job that was not stored before. When it returns, every finished job that is old
    /// enough to be forgotten is in the history: any that finish later are not old enough.
    pub(crate) async fn keep(&mut self, runner: &Runner) -> Result<()> {
        let Some(history) = &runner.ports.history else { return Ok(()) };
        let (mut all, mut before) = (HashSet::new(), None);
        loop {
            let page = JobPage { before, max: BATCH };
            let jobs = runner.ports.jobs.list(&JobFilter::default(), page).await?;
            let Some(last) = jobs.last() else { break };
            before = Some(last.number);
            let over = jobs.into_iter().filter(|job| job.status().is_over());
            let (kept, new): (Vec<_>, Vec<_>) = over.partition(|job| self.0.contains(&job.new.id));
            history.keep_jobs(&new).await?;
            all.extend(kept.into_iter().chain(new).map(|job| job.new.id));
        }
        self.0 = all;
        Ok(())
    }
}

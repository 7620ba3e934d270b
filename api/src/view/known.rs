//! A crawl in the API: its stats and its job. The crawl of a job is known before it begins.

use trawl_common::crawl_end::Left;
use trawl_common::frontier::crawl::{CrawlState, CrawlStats};
use trawl_common::jobs::{self, JobState, JobStatus};

use super::Job;

/// A crawl.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Known {
    pub(crate) stats: CrawlStats,
    /// Its job, if it has one.
    pub(crate) job: Option<Job>,
    /// Whether it is being fed, with no result yet.
    is_being_fed: bool,
    /// The number of URLs and tasks that are pending in the crawls of other spiders to which it handed work; 0 while it
    /// has pending work itself.
    pub(crate) handed_pending: u64,
}

impl Known {
    /// Returns a crawl without a job.
    pub(crate) fn of_no_job(stats: CrawlStats) -> Self {
        Self { stats, job: None, is_being_fed: false, handed_pending: 0 }
    }

    /// Returns the crawl of a job, which has begun if it has stats. The crawl of a failed job does not count
    /// as finished.
    pub(crate) fn of_job(job: &jobs::Job, stats: Option<CrawlStats>) -> Self {
        let mut stats = stats.unwrap_or_else(|| job.stats_before_it_begins());
        if job.status() == JobStatus::Failed && stats.status == CrawlState::Finished {
            stats.status = CrawlState::Cancelled;
        }
        let is_being_fed = matches!(job.state, JobState::Feeding { is_cancelled: false, .. });
        Self { stats, job: Some(job.into()), is_being_fed, handed_pending: 0 }
    }

    /// Notes the work that is left of it.
    pub(crate) fn with(self, left: Left) -> Self {
        let handed_pending = match left {
            Left::Handed(pending) => pending,
            Left::Own | Left::Nothing => 0,
        };
        Self { handed_pending, ..self }
    }

    /// Whether it has ended itself, and a cancelled one has nothing left. While its job is being fed it has not
    /// ended, because the job may still fail.
    pub(crate) fn has_ended(&self) -> bool {
        self.stats.status.is_over() && self.stats.pending == 0 && !self.is_being_fed
    }

    /// Whether it has ended, and so has all the work that it handed to other spiders.
    pub(crate) fn is_over(&self) -> bool {
        self.has_ended() && self.handed_pending == 0
    }

    /// Returns a copy without the elapsed time.
    pub(crate) fn timeless(&self) -> Self {
        Self { stats: CrawlStats { seconds: 0.0, ..self.stats.clone() }, ..self.clone() }
    }
}

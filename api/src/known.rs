//! A crawl in the API: its stats and its job. The crawl of a job is known before it begins.

use trawl_common::frontier::crawl::{CrawlState, CrawlStats};
use trawl_common::jobs::{self, JobState, JobStatus};
use trawl_common::names::CrawlId;
use trawl_common::ports::Result;

use crate::problem::{Kind, Problem};
use crate::view::Job;
use crate::{Api, Backend};

/// A crawl.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Known {
    pub(crate) stats: CrawlStats,
    /// Its job, if it has one.
    pub(crate) job: Option<Job>,
    /// Whether it is being fed, with no result yet.
    is_being_fed: bool,
}

impl Known {
    /// Returns a crawl without a job.
    pub(crate) fn of_no_job(stats: CrawlStats) -> Self {
        Self { stats, job: None, is_being_fed: false }
    }

    /// Returns the crawl of a job, which has begun if it has stats. The crawl of a failed job does not count
    /// as finished.
    pub(crate) fn of_job(job: &jobs::Job, stats: Option<CrawlStats>) -> Self {
        let mut stats = stats.unwrap_or_else(|| job.stats_before_it_begins());
        if job.status() == JobStatus::Failed && stats.status == CrawlState::Finished {
            stats.status = CrawlState::Cancelled;
        }
        let is_being_fed = matches!(job.state, JobState::Feeding { is_cancelled: false, .. });
        Self { stats, job: Some(job.into()), is_being_fed }
    }

    /// Whether it has ended, and a cancelled one has nothing left. While its job is being fed it has not
    /// ended, because the job may still fail.
    pub(crate) fn is_over(&self) -> bool {
        self.stats.status.is_over() && self.stats.pending == 0 && !self.is_being_fed
    }

    /// Returns a copy without the elapsed time.
    pub(crate) fn timeless(&self) -> Self {
        Self { stats: CrawlStats { seconds: 0.0, ..self.stats.clone() }, ..self.clone() }
    }
}

impl Backend {
    /// Returns a crawl; `None` if there is neither such a crawl nor such a job.
    pub(crate) async fn known(&self, id: &CrawlId) -> Result<Option<Known>> {
        // The job first: its crawl ends before it does.
        let job = self.jobs.job(id).await?;
        let stats = self.stats.crawl_stats(id).await?;
        Ok(match job {
            Some(job) => Some(Known::of_job(&job, stats)),
            None => stats.map(Known::of_no_job),
        })
    }
}

impl Api {
    /// Returns a crawl, which must be known.
    pub(crate) async fn known(&self, id: &CrawlId) -> std::result::Result<Known, Problem> {
        self.backend.known(id).await?.ok_or_else(|| no_crawl(id))
    }

    /// Returns the stats of a crawl, which must have begun.
    pub(crate) async fn begun(&self, id: &CrawlId) -> std::result::Result<CrawlStats, Problem> {
        match self.backend.stats.crawl_stats(id).await? {
            Some(stats) => Ok(stats),
            None => {
                let status = self.known(id).await?.stats.status;
                let detail = format!("crawl {id} is {status}, and nothing of it has begun");
                Err(Problem::new(Kind::Conflict, detail))
            }
        }
    }
}

pub(crate) fn no_crawl(id: &CrawlId) -> Problem {
    Problem::not_found(format_args!("no crawl {id}: GET /api/v1/crawls lists them"))
}

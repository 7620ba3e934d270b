//! A crawl as the API knows it: its stats, and the job that it is of. That of a job is known before it begins.

use std::collections::BTreeMap;

use trawl_common::frontier::crawl::{CrawlState, CrawlStats};
use trawl_common::jobs::{self, JobState, JobStatus};
use trawl_common::names::{CrawlId, SpiderName};
use trawl_common::ports::{JobFilter, JobPage, Result};
use trawl_common::time::UnixMs;

use crate::problem::{Kind, Problem};
use crate::view::Job;
use crate::{Api, Backend};

/// How many jobs are read at a time.
const PART: usize = 500;

/// A crawl.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Known {
    pub(crate) stats: CrawlStats,
    /// The job that it is of.
    pub(crate) job: Option<Job>,
    /// When it was asked for, or, if it is of no job, when it started.
    asked: UnixMs,
    /// Whether somebody feeds it, who has not yet said what came of that.
    is_being_fed: bool,
    /// Whether its job has failed.
    has_failed: bool,
}

impl Known {
    /// A crawl that has begun, with what is known of its job. That of a job which has failed is none that is finished.
    fn begun(stats: CrawlStats, job: Option<Self>) -> Self {
        match job {
            Some(job) if job.has_failed && stats.status == CrawlState::Finished => {
                Self { stats: CrawlStats { status: CrawlState::Cancelled, ..stats }, ..job }
            }
            Some(job) => Self { stats, ..job },
            None => Self { asked: stats.started, stats, job: None, is_being_fed: false, has_failed: false },
        }
    }

    /// The crawl of a job as long as there is none.
    fn not_begun(job: &jobs::Job) -> Self {
        Self {
            stats: job.stats_before_it_begins(),
            asked: job.asked,
            has_failed: job.status() == JobStatus::Failed,
            is_being_fed: matches!(job.state, JobState::Feeding { is_cancelled: false, .. }),
            job: Some(job.into()),
        }
    }

    /// Whether it has ended, with all that a cancelled one had left. That of a job which is being fed ends with the feeding: before
    /// that nobody can tell whether the job has failed.
    pub(crate) fn is_over(&self) -> bool {
        self.stats.status.is_over() && self.stats.pending == 0 && !self.is_being_fed
    }

    /// The same without how long it has taken.
    pub(crate) fn timeless(&self) -> Self {
        Self { stats: CrawlStats { seconds: 0.0, ..self.stats.clone() }, ..self.clone() }
    }

    /// Its place among all crawls, the newest of which comes last. It stays the same when the crawl begins.
    pub(crate) fn place(&self) -> (u64, String) {
        (self.asked.0, self.stats.crawl.to_string())
    }
}

impl Backend {
    /// A crawl; `None` if there is neither such a crawl nor such a job.
    pub(crate) async fn known(&self, id: &CrawlId) -> Result<Option<Known>> {
        // First the job: its crawl ends before it does.
        let job = self.jobs.job(id).await?.as_ref().map(Known::not_begun);
        Ok(match self.stats.crawl_stats(id).await? {
            Some(stats) => Some(Known::begun(stats, job)),
            None => job,
        })
    }

    /// All crawls, or those of one spider, in no order.
    pub(crate) async fn all_known(&self, spider: Option<&SpiderName>) -> Result<Vec<Known>> {
        // First the jobs: one that begins meanwhile is among the crawls.
        let mut jobs = self.known_jobs(spider).await?;
        let mut crawls = self.stats.crawls().await?;
        crawls.retain(|stats| spider.is_none_or(|spider| *spider == stats.spider));
        let begun = crawls.into_iter().map(|stats| {
            let job = jobs.remove(&stats.crawl);
            Known::begun(stats, job)
        });
        let mut all: Vec<_> = begun.collect();
        all.extend(jobs.into_values());
        Ok(all)
    }

    /// The crawls of all jobs, or of those of one spider, as if none had begun.
    async fn known_jobs(&self, spider: Option<&SpiderName>) -> Result<BTreeMap<CrawlId, Known>> {
        let filter = JobFilter { spider: spider.cloned(), ..JobFilter::default() };
        let (mut known, mut before) = (BTreeMap::new(), None);
        loop {
            let part = self.jobs.list(&filter, JobPage { before, max: PART }).await?;
            known.extend(part.iter().map(|job| (job.new.id.clone(), Known::not_begun(job))));
            match part.last() {
                Some(last) if part.len() == PART => before = Some(last.number),
                _ => return Ok(known),
            }
        }
    }
}

impl Api {
    /// A crawl that must be known.
    pub(crate) async fn known(&self, id: &CrawlId) -> std::result::Result<Known, Problem> {
        self.backend.known(id).await?.ok_or_else(|| no_crawl(id))
    }

    /// The stats of a crawl that must have begun.
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

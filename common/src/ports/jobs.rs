//! The port for jobs: crawls are submitted here, and workers take them.

use std::time::Duration;

use async_trait::async_trait;

use super::Result;
use crate::jobs::{Hold, Job, JobOutcome, JobStatus, NewJob, Problem};
use crate::names::{CrawlId, ProjectName, SpiderName, WorkerId};

/// Keeps the crawls that were submitted, and hands each to one worker. The functions of [`Job`] define its transitions; the clock is
/// that of the store. Every call is durable when it returns, and idempotent.
///
/// A spider feeds one job at a time, and runs as many as a setting allows.
#[async_trait]
pub trait Jobs: Send + Sync {
    /// Asks for a job, and wakes somebody for it. Who asks with a known id or idempotency key gets what is there.
    ///
    /// Fails with `Refused` if it is not [sound](NewJob::check), with `Full` if the store is full.
    async fn submit(&self, job: &NewJob) -> Result<Submitted>;

    /// Takes the first job in the queue whose spider is free, under a lease. No other runner gets it before the lease has lapsed.
    async fn take(&self, runner: &WorkerId, lease: Duration) -> Result<Option<Job>>;

    /// Extends the leases of jobs that `runner` feeds. Returns, in order, which are still its own.
    async fn extend(&self, runner: &WorkerId, jobs: &[CrawlId], lease: Duration) -> Result<Vec<Hold>>;

    /// Notes that the sources of a job are read, but for those that `problem` names. Without a lease it now waits for the end of its
    /// crawl. [`Hold::Cancelled`]: its crawl is to be cancelled, and [`Jobs::end`] to be called.
    async fn fed(&self, runner: &WorkerId, job: &CrawlId, problem: Option<Problem>) -> Result<Hold>;

    /// Returns a job to its position in the queue. Nobody takes it, or another of its spider, before `wait` is over.
    async fn put_back(&self, runner: &WorkerId, job: &CrawlId, wait: Duration) -> Result<()>;

    /// Ends a job. One that has ended stays as it is.
    async fn end(&self, job: &CrawlId, outcome: &JobOutcome) -> Result<()>;

    /// Cancels a job: one that is pending is over at once, one that runs is marked. Returns what it was; `None` if there is no such
    /// job. Its crawl is for the caller to cancel, if it was running; who feeds it and who looks for its end do so as well.
    async fn cancel(&self, job: &CrawlId) -> Result<Option<JobStatus>>;

    /// Jobs that are fed and not ended, for somebody to look whether their crawls are over: at most `max`, those that were not looked
    /// at for the longest time first, and none that was looked at within `pause`.
    async fn look_after(&self, max: usize, pause: Duration) -> Result<Vec<Job>>;

    /// One job; `None` if there is none of that id.
    async fn job(&self, id: &CrawlId) -> Result<Option<Job>>;

    /// Jobs of all kinds, the newest first.
    async fn list(&self, filter: &JobFilter, page: JobPage) -> Result<Vec<Job>>;

    /// The first `max` jobs in the queue, in their order.
    async fn queued(&self, max: usize) -> Result<Vec<Job>>;

    /// How many jobs there are of each status.
    async fn counts(&self) -> Result<JobCounts>;

    /// Forgets the jobs that ended longest ago, but for the last `keep`, and all that ended within `age`. Returns how many.
    async fn forget(&self, keep: usize, age: Duration) -> Result<u64>;

    /// Completes when there may be a job to take. A wake-up may be lost, so callers also look every few seconds.
    async fn wake_up(&self);
}

/// What came of asking for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// It is pending.
    New,
    /// It was asked for before, by this id. It need not be pending any more.
    Known(CrawlId),
}

/// Which jobs are meant: those to which all applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Where they stand.
    pub status: Option<JobStatus>,
    /// Their project.
    pub project: Option<ProjectName>,
    /// Their spider.
    pub spider: Option<SpiderName>,
}

impl JobFilter {
    /// Whether a job is meant.
    pub fn admits(&self, job: &Job) -> bool {
        self.status.is_none_or(|status| status == job.status())
            && self.project.as_ref().is_none_or(|project| *project == job.new.project)
            && self.spider.as_ref().is_none_or(|spider| *spider == job.new.spider)
    }
}

/// A part of a list of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobPage {
    /// Only jobs with a smaller [`Job::number`]: that of the last one on the page before.
    pub before: Option<u64>,
    /// How many at most.
    pub max: usize,
}

/// How many jobs there are of each status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounts {
    /// They wait in the queue.
    pub pending: u64,
    /// They are being fed, or their crawls run.
    pub running: u64,
    /// They are over, and not forgotten yet.
    pub ended: u64,
}

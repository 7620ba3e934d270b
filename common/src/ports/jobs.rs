//! The port for jobs: crawls are submitted here, and workers take them.

use std::time::Duration;

use async_trait::async_trait;

use super::Result;
use crate::jobs::{Hold, Job, JobOutcome, JobStatus, NewJob, Problem};
use crate::names::{CrawlId, ProjectName, SpiderName, WorkerId};

/// Keeps the submitted crawls, and hands each to one worker. The functions of [`Job`] define its transitions; the
/// clock is the store's. Every call is durable when it returns, and idempotent.
///
/// A spider feeds one job at a time, and runs as many as a setting allows.
#[async_trait]
pub trait Jobs: Send + Sync {
    /// Submits a job, and wakes a worker for it. If the id or the idempotency key is known, returns the existing
    /// job's.
    ///
    /// Fails with `Refused` if it is not [sound](NewJob::check), with `Full` if the store is full.
    async fn submit(&self, job: &NewJob) -> Result<Submitted>;

    /// Takes the first job in the queue whose spider is free, under a lease. No other runner gets it before the
    /// lease lapses.
    async fn take(&self, runner: &WorkerId, lease: Duration) -> Result<Option<Job>>;

    /// Extends the leases of jobs that `runner` feeds. Returns, in order, whether it still holds each.
    async fn extend(&self, runner: &WorkerId, jobs: &[CrawlId], lease: Duration) -> Result<Vec<Hold>>;

    /// Notes that the sources of a job have been read, except for those that `problem` names. The job, now without
    /// a lease, waits for the end of its crawl. On [`Hold::Cancelled`] the caller has to cancel the crawl and call
    /// [`Jobs::end`].
    async fn fed(&self, runner: &WorkerId, job: &CrawlId, problem: Option<Problem>) -> Result<Hold>;

    /// Returns a job to its position in the queue. Nobody takes it, or another of its spider, before `wait` is
    /// over.
    async fn put_back(&self, runner: &WorkerId, job: &CrawlId, wait: Duration) -> Result<()>;

    /// Ends a job. A job that has ended stays as it is.
    async fn end(&self, job: &CrawlId, outcome: &JobOutcome) -> Result<()>;

    /// Cancels a job: a pending one is over at once, a running one is marked. Returns its previous status; `None`
    /// if there is no such job. If it was running, the caller cancels its crawl; the worker that feeds it and the
    /// one that looks for its end do so as well.
    async fn cancel(&self, job: &CrawlId) -> Result<Option<JobStatus>>;

    /// Returns at most `max` jobs that are fed and not ended, so that the caller checks whether their crawls are
    /// over: least recently checked first, and none that was checked within `pause`.
    async fn look_after(&self, max: usize, pause: Duration) -> Result<Vec<Job>>;

    /// Returns one job; `None` if the id is unknown.
    async fn job(&self, id: &CrawlId) -> Result<Option<Job>>;

    /// Lists jobs of every status, the newest first.
    async fn list(&self, filter: &JobFilter, page: JobPage) -> Result<Vec<Job>>;

    /// Returns the first `max` jobs in the queue, in their order.
    async fn queued(&self, max: usize) -> Result<Vec<Job>>;

    /// Returns the number of jobs of each status.
    async fn counts(&self) -> Result<JobCounts>;

    /// Forgets the jobs that ended longest ago, except for the last `keep` and all that ended within `age`.
    /// Returns the number forgotten.
    async fn forget(&self, keep: usize, age: Duration) -> Result<u64>;

    /// Forgets one job that has ended. Returns whether there was one.
    async fn forget_one(&self, job: &CrawlId) -> Result<bool>;

    /// Completes when there may be a job to take. A wake-up may be lost, so callers also poll every few seconds.
    async fn wake_up(&self);
}

/// The result of submitting a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// The job is new, and pending.
    New,
    /// It was submitted before, under this id. It may no longer be pending.
    Known(CrawlId),
}

/// A selection of jobs: those that match every given field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Their status.
    pub status: Option<JobStatus>,
    /// Their project.
    pub project: Option<ProjectName>,
    /// Their spider.
    pub spider: Option<SpiderName>,
}

impl JobFilter {
    /// Returns whether a job matches.
    pub fn admits(&self, job: &Job) -> bool {
        self.status.is_none_or(|status| status == job.status())
            && self.project.as_ref().is_none_or(|project| *project == job.new.project)
            && self.spider.as_ref().is_none_or(|spider| *spider == job.new.spider)
    }
}

/// A page of a list of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobPage {
    /// Only jobs with a smaller [`Job::number`]: the last one of the previous page.
    pub before: Option<u64>,
    /// Maximum number of jobs.
    pub max: usize,
}

/// The number of jobs of each status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounts {
    /// Waiting in the queue.
    pub pending: u64,
    /// Being fed, or with a running crawl.
    pub running: u64,
    /// Over, and not yet forgotten.
    pub ended: u64,
}

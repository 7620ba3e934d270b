//! A job, and its state.

use super::{JobOutcome, JobStatus, NewJob, Problem, QueuePosition};
use crate::frontier::crawl::{CrawlState, CrawlStats};
use crate::names::WorkerId;
use crate::time::UnixMs;

/// A submitted crawl, and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The submission.
    pub new: NewJob,
    /// Number of jobs that were submitted before it.
    pub number: u64,
    /// The time when it was submitted.
    pub asked: UnixMs,
    /// Its state.
    pub state: JobState,
}

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It waits in the queue.
    Pending {
        /// The time until which it is not taken, because its spider was busy.
        not_before: Option<UnixMs>,
    },
    /// A worker feeds it, under a lease.
    Feeding {
        /// The worker, and the time when it took the job.
        run: Run,
        /// The end of the lease.
        until: UnixMs,
        /// Whether it is to be cancelled. Its feeder does so, because the crawl may not be open yet.
        is_cancelled: bool,
    },
    /// It waits for the end of its crawl.
    Fed {
        /// The worker that fed it, and the time when it took the job.
        run: Run,
        /// The sources that could not be read, if any.
        problem: Option<Problem>,
        /// Whether it is to be cancelled, together with its crawl if that was opened.
        is_cancelled: bool,
    },
    /// It is over.
    Ended(Ended),
}

/// A job's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The worker that took it.
    pub runner: WorkerId,
    /// The time when it took the job.
    pub started: UnixMs,
}

/// A job's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The outcome.
    pub outcome: JobOutcome,
    /// The time of the end.
    pub at: UnixMs,
    /// Its run; `None` if it was never taken.
    pub run: Option<Run>,
}

impl Job {
    /// Returns a job that was just submitted, after `number` others.
    pub fn asked_for(new: NewJob, number: u64, now: UnixMs) -> Self {
        Self { new, number, asked: now, state: JobState::Pending { not_before: None } }
    }

    /// Returns its position in the queue.
    pub fn position(&self) -> QueuePosition {
        QueuePosition::new(self.new.priority, self.number)
    }

    /// Returns its status.
    pub fn status(&self) -> JobStatus {
        match &self.state {
            JobState::Pending { .. } => JobStatus::Pending,
            JobState::Feeding { .. } | JobState::Fed { .. } => JobStatus::Running,
            JobState::Ended(Ended { outcome, .. }) => outcome.status(),
        }
    }

    /// Returns its last run; `None` while it waits, and if it was never taken.
    pub fn run(&self) -> Option<&Run> {
        match &self.state {
            JobState::Pending { .. } => None,
            JobState::Feeding { run, .. } | JobState::Fed { run, .. } => Some(run),
            JobState::Ended(Ended { run, .. }) => run.as_ref(),
        }
    }

    /// Returns the time of its end, if it has ended.
    pub fn ended(&self) -> Option<UnixMs> {
        match &self.state {
            JobState::Ended(Ended { at, .. }) => Some(*at),
            _ => None,
        }
    }

    /// Returns its problem, if any: why it failed, or which of its sources could not be read.
    pub fn problem(&self) -> Option<&Problem> {
        match &self.state {
            JobState::Pending { .. } | JobState::Feeding { .. } => None,
            JobState::Fed { problem, .. } => problem.as_ref(),
            JobState::Ended(Ended { outcome, .. }) => outcome.problem(),
        }
    }

    /// Returns stats for its crawl while there is none, because nothing is counted yet, or any more. A crawl
    /// cannot fail; that of a failed job counts as cancelled.
    pub fn stats_before_it_begins(&self) -> CrawlStats {
        let status = match self.status() {
            JobStatus::Pending | JobStatus::Running => CrawlState::Pending,
            JobStatus::Finished => CrawlState::Finished,
            JobStatus::Failed | JobStatus::Cancelled => CrawlState::Cancelled,
        };
        CrawlStats::empty(self.new.crawl(), status, self.asked)
    }
}

//! A job, and its state.

use super::{JobOutcome, JobStatus, NewJob, Problem, QueuePosition};
use crate::frontier::crawl::{CrawlState, CrawlStats};
use crate::names::WorkerId;
use crate::time::UnixMs;

/// A submitted crawl, and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// What was submitted.
    pub new: NewJob,
    /// How many jobs were submitted before it.
    pub number: u64,
    /// When it was submitted.
    pub asked: UnixMs,
    /// Its state.
    pub state: JobState,
}

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It waits in the queue.
    Pending {
        /// Until when it is not taken, because its spider was busy.
        not_before: Option<UnixMs>,
    },
    /// A worker feeds it, under a lease.
    Feeding {
        /// Who, and since when.
        run: Run,
        /// When the lease lapses.
        until: UnixMs,
        /// Whether it is to be cancelled. Its crawl may or may not be open, so that is for its feeder to do.
        is_cancelled: bool,
    },
    /// It waits for the end of its crawl.
    Fed {
        /// Who fed it, and since when it has run.
        run: Run,
        /// Which of its sources could not be read, if there were any.
        problem: Option<Problem>,
        /// Whether it is to be cancelled, with its crawl if that was opened.
        is_cancelled: bool,
    },
    /// It is over.
    Ended(Ended),
}

/// A job's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Who took it.
    pub runner: WorkerId,
    /// When.
    pub started: UnixMs,
}

/// A job's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How it ended.
    pub outcome: JobOutcome,
    /// When.
    pub at: UnixMs,
    /// Its run; `None` if it was never taken.
    pub run: Option<Run>,
}

impl Job {
    /// A job that was just submitted, after `number` others.
    pub fn asked_for(new: NewJob, number: u64, now: UnixMs) -> Self {
        Self { new, number, asked: now, state: JobState::Pending { not_before: None } }
    }

    /// Its position in the queue.
    pub fn position(&self) -> QueuePosition {
        QueuePosition::new(self.new.priority, self.number)
    }

    /// Its status.
    pub fn status(&self) -> JobStatus {
        match &self.state {
            JobState::Pending { .. } => JobStatus::Pending,
            JobState::Feeding { .. } | JobState::Fed { .. } => JobStatus::Running,
            JobState::Ended(Ended { outcome, .. }) => outcome.status(),
        }
    }

    /// Who took it last, and when; `None` while it waits, and if it was never taken.
    pub fn run(&self) -> Option<&Run> {
        match &self.state {
            JobState::Pending { .. } => None,
            JobState::Feeding { run, .. } | JobState::Fed { run, .. } => Some(run),
            JobState::Ended(Ended { run, .. }) => run.as_ref(),
        }
    }

    /// When it ended.
    pub fn ended(&self) -> Option<UnixMs> {
        match &self.state {
            JobState::Ended(Ended { at, .. }) => Some(*at),
            _ => None,
        }
    }

    /// What went wrong with it, if anything did: why it failed, or which of its sources could not be read.
    pub fn problem(&self) -> Option<&Problem> {
        match &self.state {
            JobState::Pending { .. } | JobState::Feeding { .. } => None,
            JobState::Fed { problem, .. } => problem.as_ref(),
            JobState::Ended(Ended { outcome, .. }) => outcome.problem(),
        }
    }

    /// The stats of its crawl where there is none: there is nothing to count yet, or any more. A crawl cannot fail; that of a job
    /// which has failed counts as cancelled.
    pub fn stats_before_it_begins(&self) -> CrawlStats {
        let status = match self.status() {
            JobStatus::Pending | JobStatus::Running => CrawlState::Pending,
            JobStatus::Finished => CrawlState::Finished,
            JobStatus::Failed | JobStatus::Cancelled => CrawlState::Cancelled,
        };
        CrawlStats::empty(self.new.crawl(), status, self.asked)
    }
}

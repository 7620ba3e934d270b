//! What becomes of one job, as pure functions: the embedded engine calls them, and the scripts of Redis are held to them by a
//! test. Each changes nothing where the caller has no right to.

use std::time::Duration;

use super::job::{Ended, Job, JobState, JobStatus, Run};
use super::outcome::{JobOutcome, Problem};
use crate::names::WorkerId;
use crate::time::UnixMs;

/// How a job stands to one who feeds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It is still the feeder's.
    Kept,
    /// It is, and is to be cancelled, with its crawl if that was opened.
    Cancelled,
    /// It is no longer the feeder's.
    Lost,
}

impl Job {
    /// Whether somebody may take it, where its spider is free.
    pub fn is_ready(&self, now: UnixMs) -> bool {
        match self.state {
            JobState::Pending { not_before } => not_before.is_none_or(|at| at <= now),
            _ => false,
        }
    }

    /// Whether its spider can feed no other job: it is being fed, or was put back for the spider was found busy.
    pub fn occupies_spider(&self, now: UnixMs) -> bool {
        match self.state {
            JobState::Feeding { .. } => true,
            JobState::Pending { not_before } => not_before.is_some_and(|at| at > now),
            JobState::Fed { .. } | JobState::Ended(_) => false,
        }
    }

    /// **Take:** `runner` begins to feed it.
    pub fn take(&mut self, runner: &WorkerId, lease: Duration, now: UnixMs) -> bool {
        let is_ready = self.is_ready(now);
        if is_ready {
            let run = Run { runner: runner.clone(), started: now };
            self.state = JobState::Feeding { run, until: now.plus(lease), is_cancelled: false };
        }
        is_ready
    }

    /// **Lapse:** its feeder has not extended the lease in time. It is pending again, with its place in the line; one that is to be
    /// cancelled waits for whoever ends it.
    pub fn lapse(&mut self, now: UnixMs) -> bool {
        match &self.state {
            JobState::Feeding { run, until, is_cancelled } if *until <= now => {
                self.state = match is_cancelled {
                    true => JobState::Fed { run: run.clone(), problem: None, is_cancelled: true },
                    false => JobState::Pending { not_before: None },
                };
                true
            }
            _ => false,
        }
    }

    /// **Extend:** its feeder goes on.
    pub fn extend(&mut self, by: &WorkerId, lease: Duration, now: UnixMs) -> Hold {
        match &mut self.state {
            JobState::Feeding { run, until, is_cancelled } if run.runner == *by => {
                *until = now.plus(lease);
                if *is_cancelled { Hold::Cancelled } else { Hold::Kept }
            }
            _ => Hold::Lost,
        }
    }

    /// **Fed:** its sources are read.
    pub fn fed(&mut self, by: &WorkerId, problem: Option<Problem>) -> Hold {
        match &self.state {
            JobState::Feeding { run, is_cancelled, .. } if run.runner == *by => {
                let is_cancelled = *is_cancelled;
                self.state = JobState::Fed { run: run.clone(), problem, is_cancelled };
                if is_cancelled { Hold::Cancelled } else { Hold::Kept }
            }
            _ => Hold::Lost,
        }
    }

    /// **Put back:** its feeder gives it up; it keeps its place in the line. Nobody takes it before `not_before`. One that is to be
    /// cancelled waits for whoever ends it.
    pub fn put_back(&mut self, by: &WorkerId, not_before: Option<UnixMs>) -> bool {
        match &self.state {
            JobState::Feeding { run, is_cancelled, .. } if run.runner == *by => {
                self.state = match is_cancelled {
                    true => JobState::Fed { run: run.clone(), problem: None, is_cancelled: true },
                    false => JobState::Pending { not_before },
                };
                true
            }
            _ => false,
        }
    }

    /// **End:** nothing more happens to it. What has ended stays as it is.
    pub fn end(&mut self, outcome: JobOutcome, now: UnixMs) -> bool {
        if self.status().is_over() {
            return false;
        }
        self.state = JobState::Ended(Ended { outcome, at: now, run: self.run().cloned() });
        true
    }

    /// **Cancel:** one that waits in the line is over at once. One that runs is marked: who feeds it, or else whoever looks for its
    /// end, cancels its crawl and ends it. Returns what it was.
    pub fn cancel(&mut self, now: UnixMs) -> JobStatus {
        let was = self.status();
        match &mut self.state {
            JobState::Pending { .. } => {
                self.end(JobOutcome::Cancelled, now);
            }
            JobState::Feeding { is_cancelled, .. } | JobState::Fed { is_cancelled, .. } => {
                *is_cancelled = true;
            }
            JobState::Ended(_) => {}
        }
        was
    }
}

//! The state of a job in the form of both stores: in columns of a table, or in fields of a hash.

use super::job::{Ended, JobState, Run};
use super::outcome::{JobOutcome, Problem};
use super::status::JobStatus;
use crate::names::WorkerId;
use crate::time::UnixMs;

/// A [`JobState`] in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredState {
    /// The status.
    pub status: JobStatus,
    /// The worker that took it.
    pub runner: Option<WorkerId>,
    /// The time when it took the job.
    pub started: Option<UnixMs>,
    /// The end of its feeder's lease, or, if it is pending, the time until which it was put back.
    pub until: Option<UnixMs>,
    /// Whether it is to be cancelled.
    pub is_cancelled: bool,
    /// Its problem, if any.
    pub problem: Option<Problem>,
    /// The time of its end.
    pub ended: Option<UnixMs>,
}

/// The error for parts that no state has together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a {status} job without {missing}")]
pub struct ImpossibleState {
    status: JobStatus,
    missing: &'static str,
}

impl From<&JobState> for StoredState {
    fn from(state: &JobState) -> Self {
        let pending = Self {
            status: JobStatus::Pending,
            runner: None,
            started: None,
            until: None,
            is_cancelled: false,
            problem: None,
            ended: None,
        };
        let ran = |status, run: Option<&Run>| Self {
            status,
            runner: run.map(|run| run.runner.clone()),
            started: run.map(|run| run.started),
            ..pending.clone()
        };
        match state {
            JobState::Pending { not_before } => Self { until: *not_before, ..pending },
            JobState::Feeding { run, until, is_cancelled } => {
                let running = ran(JobStatus::Running, Some(run));
                Self { until: Some(*until), is_cancelled: *is_cancelled, ..running }
            }
            JobState::Fed { run, problem, is_cancelled } => {
                let running = ran(JobStatus::Running, Some(run));
                Self { problem: problem.clone(), is_cancelled: *is_cancelled, ..running }
            }
            JobState::Ended(Ended { outcome, at, run }) => {
                let problem = outcome.problem().cloned();
                Self { problem, ended: Some(*at), ..ran(outcome.status(), run.as_ref()) }
            }
        }
    }
}

impl TryFrom<StoredState> for JobState {
    type Error = ImpossibleState;

    fn try_from(stored: StoredState) -> Result<Self, ImpossibleState> {
        let StoredState { status, runner, started, until, is_cancelled, problem, ended } = stored;
        let without = |missing| ImpossibleState { status, missing };
        let run = runner.zip(started).map(|(runner, started)| Run { runner, started });
        let ended = |outcome| {
            let at = ended.ok_or(without("the time of its end"))?;
            Ok(Self::Ended(Ended { outcome, at, run: run.clone() }))
        };
        match status {
            JobStatus::Pending => Ok(Self::Pending { not_before: until }),
            JobStatus::Running => {
                let run = run.ok_or(without("a runner and the time of its start"))?;
                Ok(match until {
                    Some(until) => Self::Feeding { run, until, is_cancelled },
                    None => Self::Fed { run, problem, is_cancelled },
                })
            }
            JobStatus::Finished => ended(JobOutcome::Finished { problem }),
            JobStatus::Failed => ended(JobOutcome::Failed(problem.ok_or(without("an error"))?)),
            JobStatus::Cancelled => ended(JobOutcome::Cancelled),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_survives_its_store() {
        let (runner, at) = ("worker".parse().unwrap(), UnixMs(7));
        let run = Run { runner, started: UnixMs(3) };
        let problem = Problem::new("no such page");
        let ended = |outcome, run| JobState::Ended(Ended { outcome, at, run });
        let fed = |problem, is_cancelled| JobState::Fed { run: run.clone(), problem, is_cancelled };
        for state in [
            JobState::Pending { not_before: None },
            JobState::Pending { not_before: Some(at) },
            JobState::Feeding { run: run.clone(), until: at, is_cancelled: false },
            JobState::Feeding { run: run.clone(), until: at, is_cancelled: true },
            fed(None, false),
            fed(Some(problem.clone()), true),
            ended(JobOutcome::Finished { problem: None }, Some(run.clone())),
            ended(JobOutcome::Finished { problem: Some(problem.clone()) }, Some(run.clone())),
            ended(JobOutcome::Failed(problem), Some(run.clone())),
            ended(JobOutcome::Cancelled, None),
        ] {
            assert_eq!(JobState::try_from(StoredState::from(&state)), Ok(state));
        }
    }

    #[test]
    fn what_no_state_has_together_is_named() {
        let pending = StoredState::from(&JobState::Pending { not_before: None });
        let error = JobState::try_from(StoredState { status: JobStatus::Running, ..pending });
        assert_eq!(
            error.unwrap_err().to_string(),
            "a running job without a runner and the time of its start"
        );
    }
}

//! Submitted jobs, deployed spiders and cron schedules, stored apart from Redis, which carries them out.
//!
//! They are read and changed in Redis. Each change is also written to a RabbitMQ stream before the call that made it
//! returns. A store that has lost data restores it from there.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use trawl_common::jobs::{Ended, Job, JobOutcome, JobState, JobStatus, NewJob, Problem, Run};
use trawl_common::names::{CrawlId, ProjectName, SpiderName, SpiderRef, WorkerId};
use trawl_common::ports::{MAX_VERSIONS, ScheduleState};
use trawl_common::spider::Version;
use trawl_common::time::UnixMs;

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(crate) enum Record {
    /// A job was submitted, after `number` others.
    Submitted { new: Box<NewJob>, number: u64, asked: UnixMs },
    /// A worker started to feed a job, under a lease of `lease` ms.
    Taken { job: CrawlId, runner: WorkerId, started: UnixMs, lease: u64 },
    /// The sources of a job were read, except for those that the problem names.
    Fed { job: CrawlId, problem: Option<String> },
    /// A job was cancelled.
    Cancelled { job: CrawlId },
    /// A job is over.
    Ended { job: CrawlId, status: JobStatus, problem: Option<String>, ended: UnixMs },
    /// A version of a project was deployed. `number` is the number of the change.
    Deployed {
        project: ProjectName,
        version: Version,
        number: u64,
        added: UnixMs,
        spiders: BTreeMap<SpiderName, String>,
    },
    /// A version was removed, or the whole project without one. `number` is the number of the change.
    Removed { project: ProjectName, version: Option<Version>, number: u64 },
    /// The cron schedule of a spider is done up to this instant; without one, it is held.
    Scheduled { project: ProjectName, spider: SpiderName, until: Option<UnixMs> },
    /// Later records are signed. The record says nothing else.
    Sealed,
}

/// A record with the time when it was written.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct JournalEntry {
    pub(crate) at: UnixMs,
    #[serde(flatten)]
    pub(crate) record: Record,
}

impl Record {
    /// Returns the record of a schedule's state.
    pub(crate) fn schedule(spider: &SpiderRef, state: ScheduleState) -> Self {
        let SpiderRef { project, spider } = spider.clone();
        let until = match state {
            ScheduleState::Done(until) => Some(until),
            ScheduleState::Paused => None,
        };
        Self::Scheduled { project, spider, until }
    }

    /// Returns the record of a job's end.
    pub(crate) fn ended(job: &CrawlId, outcome: &JobOutcome, ended: UnixMs) -> Self {
        let problem = outcome.problem().map(|problem| problem.as_str().to_owned());
        Self::Ended { job: job.clone(), status: outcome.status(), problem, ended }
    }

    /// Returns the record of a job that was not over and is no longer known: it had ended, and has been forgotten.
    pub(crate) fn forgotten(job: &CrawlId, now: UnixMs) -> Self {
        Self::ended(job, &JobOutcome::Cancelled, now)
    }

    /// Returns all records that describe a job. Its lease starts anew.
    pub(crate) fn of_job(job: &Job, now: UnixMs) -> Vec<Self> {
        let id = &job.new.id;
        let new = Box::new(job.new.clone());
        let mut records = vec![Self::Submitted { new, number: job.number, asked: job.asked }];
        if let Some(Run { runner, started }) = job.run() {
            let lease = match &job.state {
                JobState::Feeding { until, .. } => until.wait_from(now).as_millis() as u64,
                _ => 0,
            };
            records.push(Self::Taken { job: id.clone(), runner: runner.clone(), started: *started, lease });
        }
        match &job.state {
            JobState::Fed { problem, .. } => {
                let problem = problem.as_ref().map(|problem| problem.as_str().to_owned());
                records.push(Self::Fed { job: id.clone(), problem });
            }
            JobState::Ended(Ended { outcome, at, .. }) => records.push(Self::ended(id, outcome, *at)),
            _ => {}
        }
        let is_cancelled = matches!(
            job.state,
            JobState::Feeding { is_cancelled: true, .. } | JobState::Fed { is_cancelled: true, .. }
        );
        if is_cancelled {
            records.push(Self::Cancelled { job: id.clone() });
        }
        records
    }
}

/// A job according to its records.
#[derive(Debug)]
pub(crate) struct LoggedJob {
    pub(crate) job: Job,
    /// The time when the submission was last written.
    pub(crate) written: UnixMs,
    /// The duration of a new lease, if the job is being fed.
    pub(crate) lease: Duration,
}

/// A version according to its records.
#[derive(Debug)]
pub(crate) struct LoggedVersion {
    pub(crate) number: u64,
    pub(crate) added: UnixMs,
    pub(crate) spiders: BTreeMap<SpiderName, String>,
    pub(crate) written: UnixMs,
}

/// A project according to its records.
#[derive(Debug, Default)]
pub(crate) struct LoggedProject {
    /// The number of changes.
    pub(crate) number: u64,
    pub(crate) versions: BTreeMap<Version, LoggedVersion>,
    /// The removed versions, each with the number of the change.
    pub(crate) removed: BTreeMap<Version, u64>,
    /// The number of the change that last removed all versions.
    all_removed: u64,
}

/// A schedule according to its records.
#[derive(Debug)]
pub(crate) struct LoggedSchedule {
    pub(crate) state: ScheduleState,
    pub(crate) written: UnixMs,
}

/// The state that follows from all records.
#[derive(Debug, Default)]
pub(crate) struct Logged {
    pub(crate) jobs: BTreeMap<CrawlId, LoggedJob>,
    pub(crate) projects: BTreeMap<ProjectName, LoggedProject>,
    pub(crate) schedules: BTreeMap<SpiderRef, LoggedSchedule>,
    /// Ends and cancellations whose jobs come later: the job can be taken before the call that submits it writes its
    /// record.
    early: BTreeMap<CrawlId, Vec<Record>>,
}

impl Logged {
    /// Applies the next entry.
    pub(crate) fn apply(&mut self, JournalEntry { at, record }: JournalEntry) {
        match record {
            Record::Submitted { new, number, asked } => {
                let id = new.id.clone();
                if let Some(known) = self.jobs.get_mut(&id) {
                    known.written = at;
                    return;
                }
                let job = Job::asked_for(*new, number, asked);
                self.jobs.insert(id.clone(), LoggedJob { job, written: at, lease: Duration::ZERO });
                for record in self.early.remove(&id).unwrap_or_default() {
                    self.apply(JournalEntry { at, record });
                }
            }
            Record::Deployed { project, version, number, added, spiders } => {
                let new = LoggedVersion { number, added, spiders, written: at };
                self.projects.entry(project).or_default().deploy(version, new);
            }
            Record::Removed { project, version, number } => {
                self.projects.entry(project).or_default().remove(version, number);
            }
            Record::Scheduled { project, spider, until } => {
                let state = until.map_or(ScheduleState::Paused, ScheduleState::Done);
                self.schedules.insert(SpiderRef { project, spider }, LoggedSchedule { state, written: at });
            }
            Record::Sealed => {}
            Record::Taken { ref job, .. }
            | Record::Fed { ref job, .. }
            | Record::Cancelled { ref job }
            | Record::Ended { ref job, .. } => {
                let id = job.clone();
                if self.jobs.contains_key(&id) {
                    self.change(&id, record);
                } else {
                    self.early.entry(id).or_default().push(record);
                }
            }
        }
    }

    /// Applies a record about a submitted job.
    fn change(&mut self, id: &CrawlId, record: Record) {
        if let Record::Taken { .. } = &record {
            self.put_back_others(id);
        }
        let Some(LoggedJob { job, lease, .. }) = self.jobs.get_mut(id) else { return };
        if job.status().is_over() {
            return;
        }
        let is_cancelled = is_cancelled(&job.state);
        match record {
            Record::Taken { runner, started, lease: ms, .. } => {
                *lease = Duration::from_millis(ms);
                let run = Run { runner, started };
                job.state = JobState::Feeding { run, until: started, is_cancelled };
            }
            Record::Fed { problem, .. } => {
                if let Some(run) = job.run().cloned() {
                    let problem = problem.map(Problem::new);
                    job.state = JobState::Fed { run, problem, is_cancelled };
                }
            }
            Record::Cancelled { .. } => drop(job.cancel(job.asked)),
            Record::Ended { status, problem, ended, .. } => {
                let problem = problem.map(Problem::new);
                let outcome = match status {
                    JobStatus::Failed => JobOutcome::Failed(problem.unwrap_or_else(|| Problem::new(""))),
                    JobStatus::Cancelled => JobOutcome::Cancelled,
                    _ => JobOutcome::Finished { problem },
                };
                job.end(outcome, ended);
            }
            _ => {}
        }
    }

    /// Requeues the spider's other jobs: a spider feeds one job at a time, so a runner that takes another has released
    /// the previous one.
    fn put_back_others(&mut self, id: &CrawlId) {
        let Some(spider) = self.jobs.get(id).map(|taken| taken.job.new.spider.clone()) else { return };
        let fed =
            |one: &&mut LoggedJob| matches!(one.job.state, JobState::Feeding { is_cancelled: false, .. });
        let others =
            self.jobs.values_mut().filter(|one| one.job.new.spider == spider && one.job.new.id != *id);
        for other in others.filter(fed) {
            other.job.state = JobState::Pending { not_before: None };
        }
    }
}

impl LoggedProject {
    fn deploy(&mut self, version: Version, new: LoggedVersion) {
        let removed = self.removed.get(&version).copied().unwrap_or_default().max(self.all_removed);
        if new.number < removed {
            return;
        }
        self.number = self.number.max(new.number);
        self.versions.insert(version, new);
        while self.versions.len() > MAX_VERSIONS {
            let oldest = self.versions.iter().min_by_key(|(_, version)| version.number);
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else { return };
            self.versions.remove(&oldest);
        }
    }

    fn remove(&mut self, version: Option<Version>, number: u64) {
        self.number = self.number.max(number);
        match version {
            Some(version) => {
                self.versions.remove(&version);
                self.removed.insert(version, number);
            }
            None => {
                self.removed.extend(std::mem::take(&mut self.versions).into_keys().map(|one| (one, number)));
                self.all_removed = number;
            }
        }
    }
}

fn is_cancelled(state: &JobState) -> bool {
    match state {
        JobState::Feeding { is_cancelled, .. } | JobState::Fed { is_cancelled, .. } => *is_cancelled,
        JobState::Pending { .. } | JobState::Ended(_) => false,
    }
}

#[cfg(test)]
mod tests;

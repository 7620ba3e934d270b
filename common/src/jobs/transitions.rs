//! The transitions of one job, as pure functions: the embedded engine calls them, and a test compares the scripts
//! of Redis with them. Each changes nothing if the caller has no right to.

use std::time::Duration;

use super::job::{Ended, Job, JobState, Run};
use super::outcome::{JobOutcome, Problem};
use super::status::JobStatus;
use crate::names::WorkerId;
use crate::time::UnixMs;

/// The relation of a job to its feeder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The feeder still holds it.
    Kept,
    /// The feeder still holds it, and is to cancel it, together with its crawl if that was opened.
    Cancelled,
    /// The feeder no longer holds it.
    Lost,
}

impl Job {
    /// Returns whether a worker may take it if its spider is free. An expired lease has to be [noted](Job::lapse)
    /// before.
    pub fn is_ready(&self) -> bool {
        matches!(self.state, JobState::Pending { not_before: None })
    }

    /// **Take:** `runner` begins to feed it.
    pub fn take(&mut self, runner: &WorkerId, lease: Duration, now: UnixMs) -> bool {
        let is_ready = self.is_ready();
        if is_ready {
            let run = Run { runner: runner.clone(), started: now };
            self.state = JobState::Feeding { run, until: now.plus(lease), is_cancelled: false };
        }
        is_ready
    }

    /// **Lapse:** its feeder has not extended the lease in time. It is pending again, at its position in the
    /// queue; a job that is to be cancelled waits to be ended. If it was put back, that time is over, too.
    pub fn lapse(&mut self, now: UnixMs) -> bool {
        let has_lapsed = match &self.state {
            JobState::Pending { not_before: Some(until) } | JobState::Feeding { until, .. } => *until <= now,
            _ => false,
        };
        if has_lapsed {
            self.give_up(None);
        }
        has_lapsed
    }

    /// **Extend:** its feeder continues.
    pub fn extend(&mut self, by: &WorkerId, lease: Duration, now: UnixMs) -> Hold {
        match &mut self.state {
            JobState::Feeding { run, until, is_cancelled } if run.runner == *by => {
                *until = now.plus(lease);
                if *is_cancelled { Hold::Cancelled } else { Hold::Kept }
            }
            _ => Hold::Lost,
        }
    }

    /// **Fed:** its sources have been read.
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

    /// **Put back:** its feeder gives it up; it keeps its position in the queue, and is not taken before
    /// `not_before`. A job that is to be cancelled waits to be ended.
    pub fn put_back(&mut self, by: &WorkerId, not_before: Option<UnixMs>) -> bool {
        let is_held = matches!(&self.state, JobState::Feeding { run, .. } if run.runner == *by);
        if is_held {
            self.give_up(not_before);
        }
        is_held
    }

    fn give_up(&mut self, not_before: Option<UnixMs>) {
        self.state = match &self.state {
            JobState::Feeding { run, is_cancelled: true, .. } => {
                JobState::Fed { run: run.clone(), problem: None, is_cancelled: true }
            }
            _ => JobState::Pending { not_before },
        };
    }

    /// **End:** nothing more happens to it. A job that has ended stays as it is.
    pub fn end(&mut self, outcome: JobOutcome, now: UnixMs) -> bool {
        if self.status().is_over() {
            return false;
        }
        self.state = JobState::Ended(Ended { outcome, at: now, run: self.run().cloned() });
        true
    }

    /// **Cancel:** a job that waits in the queue is over at once. A running one is marked: its feeder, or else the
    /// worker that looks for its end, cancels its crawl and ends it. Returns its previous status.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::jobs::NewJob;
    use crate::names::SpiderName;

    const LEASE: Duration = Duration::from_secs(60);

    #[derive(Clone, Copy, Debug)]
    enum Call {
        Take(bool),
        Lapse,
        Extend(bool),
        Fed(bool),
        PutBack(bool),
        End,
        Cancel,
    }

    fn calls() -> impl Strategy<Value = Vec<(Call, u64)>> {
        let who = any::<bool>;
        let call = prop_oneof![
            4 => who().prop_map(Call::Take),
            2 => Just(Call::Lapse),
            2 => who().prop_map(Call::Extend),
            2 => who().prop_map(Call::Fed),
            2 => who().prop_map(Call::PutBack),
            1 => Just(Call::End),
            1 => Just(Call::Cancel),
        ];
        proptest::collection::vec((call, 0..90_000_u64), 0..40)
    }

    fn worker(is_first: bool) -> WorkerId {
        if is_first { "one" } else { "two" }.parse().unwrap()
    }

    fn job() -> Job {
        Job::asked_for(NewJob::new("a".parse().unwrap(), SpiderName::default()), 1, UnixMs(1))
    }

    fn feeder(job: &Job) -> Option<&WorkerId> {
        match &job.state {
            JobState::Feeding { run, .. } => Some(&run.runner),
            _ => None,
        }
    }

    proptest! {
        #[test]
        fn only_its_feeder_moves_a_job_and_an_end_or_a_cancellation_is_for_good(calls in calls()) {
            let (mut job, mut now) = (job(), UnixMs(1));
            let mut was_cancelled = false;
            for (call, later) in calls {
                now = now.plus(Duration::from_millis(later));
                let before = job.clone();
                match call {
                    Call::Take(who) => {
                        let taken = job.take(&worker(who), LEASE, now);
                        prop_assert_eq!(taken, before.is_ready());
                        prop_assert!(!taken || feeder(&job) == Some(&worker(who)));
                    }
                    Call::Lapse => {
                        let lapsed = job.lapse(now);
                        let occupies_spider = matches!(
                            before.state,
                            JobState::Feeding { .. } | JobState::Pending { not_before: Some(_) }
                        );
                        prop_assert!(!lapsed || occupies_spider);
                        prop_assert!(!job.lapse(now), "twice is once");
                    }
                    Call::Extend(who) => {
                        let kept = job.extend(&worker(who), LEASE, now) != Hold::Lost;
                        prop_assert_eq!(kept, feeder(&before) == Some(&worker(who)));
                        prop_assert!(!kept || !job.clone().lapse(now));
                    }
                    Call::Fed(who) => {
                        let kept = job.fed(&worker(who), None) != Hold::Lost;
                        prop_assert_eq!(kept, feeder(&before) == Some(&worker(who)));
                    }
                    Call::PutBack(who) => {
                        let was_held = job.put_back(&worker(who), Some(now.plus(LEASE)));
                        prop_assert_eq!(was_held, feeder(&before) == Some(&worker(who)));
                        prop_assert!(!job.is_ready() || before.is_ready());
                    }
                    Call::End => prop_assert!(job.end(JobOutcome::failed("no"), now) != before.status().is_over()),
                    Call::Cancel => {
                        prop_assert_eq!(job.cancel(now), before.status());
                        was_cancelled |= !before.status().is_over();
                    }
                }
                prop_assert!(!before.status().is_over() || job == before, "what is over stays");
                prop_assert!(!was_cancelled || !job.is_ready(), "what is cancelled is taken by nobody");
                prop_assert_eq!(job.position(), before.position());
            }
        }
    }

    #[test]
    fn a_job_that_is_cancelled_while_it_is_fed_waits_for_whoever_ends_it_when_its_feeder_is_gone() {
        let mut job = job();
        assert!(job.take(&worker(true), LEASE, UnixMs(1)));
        assert_eq!(job.cancel(UnixMs(2)), JobStatus::Running);
        assert_eq!(job.extend(&worker(true), LEASE, UnixMs(3)), Hold::Cancelled);
        assert!(job.lapse(UnixMs(3).plus(LEASE)));
        assert!(matches!(job.state, JobState::Fed { is_cancelled: true, .. }), "{job:?}");
    }
}

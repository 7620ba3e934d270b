//! A model test: whatever two runners and an operator do to a few jobs, a store answers as the functions of
//! `common/src/jobs/transitions.rs` do.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use trawl_common::jobs::{Hold, Job, JobOutcome, JobState, Problem, StoredState};
use trawl_common::names::{SpiderName, WorkerId};
use trawl_common::ports::{JobCounts, JobFilter, JobPage, Jobs, Result, Submitted};
use trawl_common::time::UnixMs;

use super::{LONG, id, job, runner};

/// Number of jobs in the test; every other one is of the first spider.
const JOBS: usize = 5;

/// The model's clock, which stands still: a lease expires at once, or not within the test.
const NOW: UnixMs = UnixMs(1);

/// One call by a runner or an operator.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Submits a job with this priority.
    Submit(usize, i8),
    /// Takes a job, under a lease that expires at once or never.
    Take(bool, bool),
    /// Extends a lease, to expire at once or never.
    Extend(bool, usize, bool),
    /// Reports that the sources are read, with a problem or without.
    Fed(bool, usize, bool),
    /// Puts a job back, for long or not.
    PutBack(bool, usize, bool),
    /// Ends a job.
    End(usize, bool),
    /// Cancels a job.
    Cancel(usize),
}

/// Draws steps.
pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (flag, number) = (any::<bool>, || 0..JOBS);
    let step = prop_oneof![
        3 => (number(), -1..=1_i8).prop_map(|(job, priority)| Step::Submit(job, priority)),
        4 => (flag(), flag()).prop_map(|(who, lapses)| Step::Take(who, lapses)),
        2 => (flag(), number(), flag()).prop_map(|(who, job, lapses)| Step::Extend(who, job, lapses)),
        2 => (flag(), number(), flag()).prop_map(|(who, job, fails)| Step::Fed(who, job, fails)),
        2 => (flag(), number(), flag()).prop_map(|(who, job, long)| Step::PutBack(who, job, long)),
        1 => (number(), flag()).prop_map(|(job, fails)| Step::End(job, fails)),
        1 => number().prop_map(Step::Cancel),
    ];
    proptest::collection::vec(step, 0..60)
}

/// Takes `steps` on empty `jobs` with a limit of `per_spider` running jobs per spider.
///
/// # Panics
/// If they depart from the model.
pub async fn obeys_the_model(jobs: &Arc<dyn Jobs>, per_spider: usize, steps: &[Step]) -> Result<()> {
    let mut model = Model { jobs: Vec::new(), per_spider };
    for step in steps {
        take_step(*step, jobs, &mut model).await?;
        agree(jobs, &model).await?;
    }
    Ok(())
}

async fn take_step(step: Step, jobs: &Arc<dyn Jobs>, model: &mut Model) -> Result<()> {
    let name = |number: usize| id(&format!("j{number}"));
    match step {
        Step::Submit(number, priority) => {
            let spider = if number % 2 == 0 { "a" } else { "b" };
            let new = job(name(number).as_str(), spider, priority.into());
            let expected = match model.find(number) {
                Some(_) => Submitted::Known(name(number)),
                None => {
                    model.jobs.push(Job::asked_for(new.clone(), model.jobs.len() as u64 + 1, NOW));
                    Submitted::New
                }
            };
            assert_eq!(jobs.submit(&new).await?, expected);
        }
        Step::Take(who, lapses) => {
            let taken = jobs.take(&worker(who), lease(lapses)).await?;
            assert_eq!(taken.map(|job| view(&job)), model.take(&worker(who), lease(lapses)).map(view));
        }
        Step::Extend(who, number, lapses) => {
            let holds = jobs.extend(&worker(who), &[name(number)], lease(lapses)).await?;
            let expected = model.find(number).map(|job| job.extend(&worker(who), lease(lapses), NOW));
            assert_eq!(holds, [expected.unwrap_or(Hold::Lost)]);
        }
        Step::Fed(who, number, fails) => {
            let problem = fails.then(|| Problem::new("no such page"));
            let hold = jobs.fed(&worker(who), &name(number), problem.clone()).await?;
            let expected = model.find(number).map(|job| job.fed(&worker(who), problem));
            assert_eq!(hold, expected.unwrap_or(Hold::Lost));
        }
        Step::PutBack(who, number, long) => {
            let wait = if long { LONG } else { Duration::ZERO };
            jobs.put_back(&worker(who), &name(number), wait).await?;
            if let Some(job) = model.find(number) {
                job.put_back(&worker(who), long.then(|| NOW.plus(LONG)));
            }
        }
        Step::End(number, fails) => {
            let outcome = match fails {
                true => JobOutcome::failed("no such spider"),
                false => JobOutcome::Finished { problem: None },
            };
            jobs.end(&name(number), &outcome).await?;
            if let Some(job) = model.find(number) {
                job.end(outcome, NOW);
            }
        }
        Step::Cancel(number) => {
            let was = jobs.cancel(&name(number)).await?;
            assert_eq!(was, model.find(number).map(|job| job.cancel(NOW)));
        }
    }
    Ok(())
}

async fn agree(jobs: &Arc<dyn Jobs>, model: &Model) -> Result<()> {
    let all = jobs.list(&JobFilter::default(), JobPage { before: None, max: 100 }).await?;
    let expected: Vec<View> = model.jobs.iter().rev().map(view).collect();
    assert_eq!(all.iter().map(view).collect::<Vec<_>>(), expected);
    let mut queue: Vec<&Job> =
        model.jobs.iter().filter(|job| matches!(job.state, JobState::Pending { .. })).collect();
    queue.sort_by_key(|job| job.position());
    let stored = jobs.queued(100).await?;
    assert_eq!(stored.iter().map(view).collect::<Vec<_>>(), queue.into_iter().map(view).collect::<Vec<_>>());
    let count = |is: fn(&Job) -> bool| model.jobs.iter().filter(|job| is(job)).count() as u64;
    let counts = JobCounts {
        pending: count(|job| matches!(job.state, JobState::Pending { .. })),
        running: count(|job| job.status().as_str() == "running"),
        ended: count(|job| job.status().is_over()),
    };
    assert_eq!(jobs.counts().await?, counts);
    let mut fed: Vec<View> = jobs.look_after(100, Duration::ZERO).await?.iter().map(view).collect();
    fed.sort_by_key(|view| view.0);
    let expected = model.jobs.iter().filter(|job| matches!(job.state, JobState::Fed { .. }));
    assert_eq!(fed, expected.map(view).collect::<Vec<_>>());
    Ok(())
}

fn worker(is_first: bool) -> WorkerId {
    runner(if is_first { "one" } else { "two" })
}

fn lease(lapses: bool) -> Duration {
    if lapses { Duration::ZERO } else { LONG }
}

/// A job without its times, which are the store's.
type View = (u64, String, StoredState);

fn view(job: &Job) -> View {
    let state = StoredState::from(&job.state);
    let known = |at: Option<UnixMs>| at.map(|_| NOW);
    let (started, until, ended) = (known(state.started), known(state.until), known(state.ended));
    (job.number, job.new.id.to_string(), StoredState { started, until, ended, ..state })
}

struct Model {
    jobs: Vec<Job>,
    per_spider: usize,
}

/// Whether the spider of a job can feed no other one: it is being fed, or was put back because the spider was busy.
fn occupies_spider(job: &Job) -> bool {
    matches!(job.state, JobState::Feeding { .. } | JobState::Pending { not_before: Some(_) })
}

impl Model {
    fn find(&mut self, number: usize) -> Option<&mut Job> {
        self.jobs.iter_mut().find(|job| job.new.id == id(&format!("j{number}")))
    }

    fn take(&mut self, runner: &WorkerId, lease: Duration) -> Option<&Job> {
        for job in &mut self.jobs {
            job.lapse(NOW);
        }
        let is_free = |spider: &SpiderName| {
            let of_spider = || self.jobs.iter().filter(move |job| job.new.spider == *spider);
            let running = of_spider().filter(|job| job.status().as_str() == "running").count();
            running < self.per_spider && !of_spider().any(occupies_spider)
        };
        let ready =
            self.jobs.iter().enumerate().filter(|(_, job)| job.is_ready() && is_free(&job.new.spider));
        let (first, _) = ready.min_by_key(|(_, job)| job.position())?;
        let job = &mut self.jobs[first];
        job.take(runner, lease, NOW);
        Some(job)
    }
}

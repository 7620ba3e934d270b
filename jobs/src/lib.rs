//! Runs jobs: takes submitted crawls, the most urgent first, feeds each as the producer does, and ends the
//! job with its crawl.
//!
//! 1. [`run`] takes up to `jobs.per_worker` jobs, when woken or every few seconds.
//! 2. `feed` reads a job's sources into its crawl, extending the job's lease meanwhile.
//! 3. `ending` checks whether the crawls of jobs have ended, no matter which worker fed them, and forgets old
//!    jobs, which `history` stores first.
//! 4. `schedule` submits the crawls that are due by the schedules in spiders' files.
//!
//! A worker that dies loses nothing: when its lease lapses, the job is back in the queue, and the next worker
//! goes on with the same crawl.

mod ending;
mod feed;
mod history;
mod schedule;
mod sources;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use trawl_common::events::{Event, JobEvent};
use trawl_common::health::Health;
use trawl_common::jobs::NewJob;
use trawl_common::names::WorkerId;
use trawl_common::ports::{Ports, Result};
use trawl_common::settings::Settings;
use trawl_common::spider::folder::Folder;
use trawl_common::time::UnixMs;

/// Interval at which to look for jobs to take and crawls that have ended, even without a wake-up.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Shared state of the tasks that run jobs.
struct Runner {
    ports: Ports,
    settings: Arc<Settings>,
    folder: Folder,
    id: WorkerId,
    health: Health,
}

/// Runs jobs until `stop`, using the spider files in `folder`; then gives back the jobs that are not fully
/// fed. Waits for servers that are unavailable.
pub async fn run(
    ports: Ports,
    settings: Arc<Settings>,
    folder: Folder,
    id: WorkerId,
    stop: CancellationToken,
) {
    let runner = Arc::new(Runner { ports, settings, folder, id, health: Health::default() });
    if runner.capacity() == 0 {
        return;
    }
    // Aborted when this function returns.
    let mut beside = JoinSet::new();
    beside.spawn(ending::run(Arc::clone(&runner)));
    beside.spawn(schedule::run(Arc::clone(&runner)));
    let mut feeding = JoinSet::new();
    while !stop.is_cancelled() {
        fill(&runner, &mut feeding, &stop).await;
        tokio::select! {
            () = stop.cancelled() => {}
            Some(_) = feeding.join_next() => {}
            () = runner.ports.jobs.wake_up(), if feeding.len() < runner.capacity() => {}
            () = sleep(POLL_INTERVAL) => {}
        }
    }
    while feeding.join_next().await.is_some() {}
}

/// Takes jobs up to the capacity and feeds each in its own task.
async fn fill(runner: &Arc<Runner>, feeding: &mut JoinSet<()>, stop: &CancellationToken) {
    while feeding.len() < runner.capacity() && !stop.is_cancelled() {
        let taken = runner.ports.jobs.take(&runner.id, runner.lease()).await;
        let Some(Some(job)) = runner.noted("taking a job", taken) else { return };
        let (runner, stop) = (Arc::clone(runner), stop.clone());
        feeding.spawn(async move { feed::run(&runner, job, &stop).await });
    }
}

impl Runner {
    /// Returns the value of a call that is repeated anyway, or `None` if it failed, which it reports.
    fn noted<T>(&self, what: &str, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => {
                self.health.report_ok(what);
                Some(value)
            }
            Err(error) => {
                self.health.report_failure(what, &error);
                None
            }
        }
    }

    /// Announces that a job fails. Call it before the job ends: if this process dies in between, the job is taken or
    /// looked at again, and the event is repeated.
    async fn announce_failure(&self, job: &NewJob, problem: &str) -> Result<()> {
        let (crawl, project, problem) = (job.crawl(), job.project.clone(), problem.to_owned());
        let event = JobEvent { at: UnixMs::now(), crawl, project, problem };
        self.ports.engine.announce(&Event::Job(event)).await
    }

    /// The number of jobs fed at once.
    fn capacity(&self) -> usize {
        self.settings.jobs.per_worker.into()
    }

    /// The lease of a job, which is extended while the job is fed.
    fn lease(&self) -> Duration {
        self.settings.recovery.lost_after
    }
}

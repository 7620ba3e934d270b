//! Runs jobs: takes the crawls that were submitted, the most urgent first, feeds each as the producer does, and ends the job with its
//! crawl.
//!
//! 1. [`run`] takes jobs up to `jobs.per_worker`, when it is woken or every few seconds;
//! 2. `feed` reads its sources into its crawl, and extends its lease meanwhile;
//! 3. `ending` checks whether crawls of jobs have ended, whoever fed them, and forgets old jobs, which the `history` keeps;
//! 4. `schedule` submits the crawls that are due by the schedules in spiders' files.
//!
//! A worker that dies loses nothing: when its lease lapses, the job is in the queue again, and the next worker goes on with the same
//! crawl.

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
use trawl_common::health::Health;
use trawl_common::names::WorkerId;
use trawl_common::ports::{Ports, Result};
use trawl_common::settings::Settings;
use trawl_common::spider::folder::Folder;

/// How often to look for jobs to take and crawls that have ended, whether or not a wake-up came.
const LOOK: Duration = Duration::from_secs(2);

/// What it takes to run jobs.
struct Runner {
    ports: Ports,
    settings: Arc<Settings>,
    folder: Folder,
    id: WorkerId,
    health: Health,
}

/// Runs jobs until `stop`, by what the files of spiders in `folder` say; then gives back what is not fed to its end. Servers that are
/// away are waited for.
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
    // Ended with this function.
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
            () = sleep(LOOK) => {}
        }
    }
    while feeding.join_next().await.is_some() {}
}

/// Takes jobs up to the capacity, and feeds each in a task of its own.
async fn fill(runner: &Arc<Runner>, feeding: &mut JoinSet<()>, stop: &CancellationToken) {
    while feeding.len() < runner.capacity() && !stop.is_cancelled() {
        let taken = runner.ports.jobs.take(&runner.id, runner.lease()).await;
        let Some(Some(job)) = runner.noted("taking a job", taken) else { return };
        let (runner, stop) = (Arc::clone(runner), stop.clone());
        feeding.spawn(async move { feed::run(&runner, job, &stop).await });
    }
}

impl Runner {
    /// The value of a call that is repeated anyway; `None` if it failed, which is reported.
    fn noted<T>(&self, what: &str, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => {
                self.health.works(what);
                Some(value)
            }
            Err(error) => {
                self.health.fails(what, &error);
                None
            }
        }
    }

    /// How many jobs are fed at once.
    fn capacity(&self) -> usize {
        self.settings.jobs.per_worker.into()
    }

    /// The lease of a job, which is extended while the job is fed.
    fn lease(&self) -> Duration {
        self.settings.recovery.lost_after
    }
}

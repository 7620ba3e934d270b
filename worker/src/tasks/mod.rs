//! Tasks: claimed beside pages, run by their spider's program, settled as pages are.
//!
//! 1. Takes a permit, then claims a task, so that other workers can take the tasks that this one cannot run
//!    yet.
//! 2. Finds the spider that its crawl needs. A task whose spider is not available here is left to other
//!    workers; one whose spider's sinks accept nothing is snoozed, since it would hold the permits of other
//!    spiders' tasks.
//! 3. Counts the start, unless a more urgent task of the spider waits in the fleet: then that one comes
//!    first. A task that was started too often without an end crashes its workers: it becomes a dead letter.
//!    Suspects start one at a time.
//! 4. Runs it with the [`TaskRunner`]. Its lease is extended meanwhile, like all leases of the worker. A task
//!    that no longer belongs to the worker, for example because its crawl was cancelled, is aborted.
//! 5. Turns its result into items for the sinks and work for the frontier (`outcome`), and passes these on to
//!    be stored and settled.

mod outcome;
mod programs;
mod runner;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::info;
use trawl_common::frontier::outcome::{Outcome, Skip};
use trawl_common::frontier::{Task, is_suspect};
use trawl_common::ports::{Claimed, Frontier};
use trawl_common::time::UnixMs;

pub(crate) use self::programs::Programs;
pub(crate) use self::runner::{Gave, Ran, TaskRunner};
use crate::claim::CrawlSpiders;
use crate::claimed::settlement::{Settlement, aborted, panicked};
use crate::context::Context;
use crate::programs::Watch;
use crate::spiders::LoadedSpider;
use crate::telemetry::idle_reasons::{IdleReasons, requeue};

/// The number of tasks to hold for each one run at once, so that urgent ones can come first.
const TASKS_HELD_PER_RUN: u16 = 4;
/// Maximum number of tasks to hold: each may have a megabyte.
const MAX_TASKS_HELD: u16 = 64;

/// Returns the number of tasks that a worker holds if it runs `at_once` of them.
pub(crate) fn tasks_ahead(at_once: u16) -> u16 {
    at_once.saturating_mul(TASKS_HELD_PER_RUN).min(MAX_TASKS_HELD)
}

/// Claims tasks and has them run.
pub(crate) struct Tasks {
    pub(crate) context: Arc<Context>,
    pub(crate) frontier: Arc<dyn Frontier>,
    pub(crate) idle_reasons: Arc<IdleReasons>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) runner: Arc<dyn TaskRunner>,
    pub(crate) spiders: CrawlSpiders,
    /// The number of tasks run at once.
    pub(crate) at_once: u16,
    /// The channel for finished tasks.
    pub(crate) settle: mpsc::Sender<Settlement>,
    /// The permit of the one running task that may crash workers.
    pub(crate) suspects: Arc<Semaphore>,
}

impl Tasks {
    /// Runs tasks until `stop`, then waits for those that have started.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let permits = Arc::new(Semaphore::new(self.at_once.into()));
        let tasks = Arc::new(self);
        let mut running = JoinSet::new();
        while let Some((claimed, permit)) = stop.run_until_cancelled(tasks.next(&permits)).await.flatten() {
            while running.try_join_next().is_some() {}
            let tasks = Arc::clone(&tasks);
            running.spawn(async move {
                tasks.handle(claimed).await;
                drop(permit);
            });
        }
        while running.join_next().await.is_some() {}
    }

    /// Claims the next task, with a permit for it. Cancelling the call loses nothing.
    async fn next(&self, permits: &Arc<Semaphore>) -> Option<(Claimed, OwnedSemaphorePermit)> {
        let permit = Arc::clone(permits).acquire_owned().await.ok()?;
        match self.frontier.claim_tasks(1).await {
            Ok(mut claimed) => Some((claimed.pop()?, permit)),
            Err(error) => {
                self.context.health.abort(error);
                None
            }
        }
    }

    async fn handle(&self, claimed: Claimed) {
        let place = match is_suspect(claimed.starts) {
            true => Arc::clone(&self.suspects).acquire_owned().await.ok(),
            false => None,
        };
        let began = Instant::now();
        let settlement = match self.begin(&claimed).await {
            Ok(Some((spider, task))) => self.work(&claimed, spider, &task).await.after(began.elapsed()),
            Ok(None) => return,
            Err(outcome) => Settlement::of_task(claimed, Err(outcome)),
        };
        let settlement = settlement.with_alone(place);
        // Closed only when the settler is gone, which ends after this.
        let _ = self.settle.send(settlement).await;
    }

    /// Returns the spider of a task that may start, or the outcome of one that may not; `None` if the task is
    /// claimed again, after a more urgent one.
    async fn begin(&self, claimed: &Claimed) -> Result<Option<(Arc<LoadedSpider>, Arc<Task>)>, Outcome> {
        let Claimed { message, is_beyond_limit, crawl, .. } = claimed;
        let Some(task) = message.work.task() else { return Err(requeue(message)) };
        if *is_beyond_limit {
            return Err(Outcome::Skipped(Skip::Limit));
        }
        let known = self.spiders.of(&message.crawl, &crawl.terms).await;
        let spider = match known.map_err(|error| aborted(&self.context.health, error))? {
            Ok(spider) if self.runner.runs(&spider) => spider,
            other => {
                let why = other.err().unwrap_or_else(|| "it has no [handler]".to_owned());
                return Err(self.idle_reasons.requeue(message, &why));
            }
        };
        if message.is_expired(UnixMs::now()) {
            return Err(Outcome::Expired);
        }
        if let Some(until) = spider.backlog.put_off(tasks_ahead(self.at_once)) {
            return Err(Outcome::Snooze { until });
        }
        let start = self.frontier.start_task(claimed).await;
        match start.map_err(|error| aborted(&self.context.health, error))? {
            None => Ok(None),
            Some(start) => start.outcome().map_or_else(|| Ok(Some((spider, Arc::clone(task)))), Err),
        }
    }

    /// Runs a task while it belongs to this worker. A task that makes the worker panic is not retried, since
    /// it would do the same to others.
    async fn work(&self, claimed: &Claimed, spider: Arc<LoadedSpider>, task: &Task) -> Settlement {
        let view = outcome::view(claimed, &spider, task, &self.context.settings);
        let running = AssertUnwindSafe(self.runner.run(&spider, view, &self.context.log)).catch_unwind();
        let watched = self.watch.over(&claimed.message);
        let ran = tokio::select! {
            biased;
            ran = running => ran,
            () = watched.lost() => {
                let (task, crawl) = (&task.key, &claimed.message.crawl.id);
                info!(%task, %crawl, "its program is ended: the task was cancelled, or another worker has it");
                return Settlement::of_task(claimed.clone(), Err(Outcome::Republish));
            }
        };
        if matches!(ran, Ok(Ran::Done(_) | Ran::Failed(_) | Ran::Skipped)) {
            self.idle_reasons.note_work_for(&spider.spider.name);
        }
        match ran {
            Ok(ran) => outcome::settlement(self, claimed, spider, task, ran),
            Err(_) => Settlement::of_task(claimed.clone(), Err(panicked())),
        }
    }
}

//! A worker from its start to its end: [`Worker::build`], [`Worker::run`], [`Worker::shut_down`].

mod build;
mod fleet_log;
mod pipeline;

use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{info, warn};
use trawl_common::logs::LogLevel;
use trawl_common::ports::{self, Fatal, Frontier, SpiderTexts};

use self::fleet_log::FleetLog;
use crate::context::Context;
use crate::fetch::Fetching;
use crate::programs::Watch;
use crate::proxy::HandlerProxy;
use crate::schedule::Scheduling;
use crate::schedule::sessions::Sessions;
use crate::settle::Settler;
use crate::spiders::{Spiders, Unready};
use crate::tasks::TaskRunner;
use crate::telemetry::background::Reporter;
use crate::telemetry::idle_reasons::IdleReasons;
use crate::telemetry::tally::Counts;

/// The reason why a worker could not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The default spider is unusable.
    #[error(transparent)]
    Spider(#[from] Unready),
    /// The system provides no threads.
    #[error("cannot start threads that fetch and parse: {0}")]
    Threads(#[source] std::io::Error),
    /// A server answered a call with an error that no waiting resolves.
    #[error(transparent)]
    Port(#[from] ports::Error),
}

/// The time that a worker may take to release its work after the shutdown timeout.
const LAST_WORD: Duration = Duration::from_secs(5);

/// The parts of a worker.
pub(crate) struct Worker {
    context: Arc<Context>,
    log: FleetLog,
    frontier: Arc<dyn Frontier>,
    texts: Arc<dyn SpiderTexts>,
    spiders: Arc<Spiders>,
    pub(crate) scheduling: Arc<Scheduling>,
    sessions: Arc<Sessions>,
    fetching: Arc<Fetching>,
    settler: Arc<Settler>,
    idle_reasons: Arc<IdleReasons>,
    reporter: Arc<Reporter>,
    watch: Arc<Watch>,
    /// The task runner, if there is one, and the number of tasks to run at once.
    tasks: Option<(Arc<dyn TaskRunner>, u16)>,
    proxy: Arc<HandlerProxy>,
    /// Ends the proxy if the worker ends early.
    _proxy_ends: DropGuard,
    /// The engine's background work, until it is started.
    maintenance: Option<Pin<Box<dyn Future<Output = Fatal> + Send>>>,
    stop: CancellationToken,
}

impl Worker {
    /// Works until `stop`, then until what has begun has ended or the shutdown timeout has passed; or until a
    /// port fails permanently.
    pub(crate) async fn run(mut self) -> Result<(), RunError> {
        let beating = self.context.health.retry("the first heartbeat", || self.reporter.first_heartbeat());
        let Some(beaten) = self.stop.run_until_cancelled(beating).await else { return Ok(()) };
        beaten?;
        let (log, version) = (&self.context.log, env!("CARGO_PKG_VERSION"));
        log.write(log.entry(LogLevel::Info, format!("the worker has started, version {version}")));
        // Aborted when this function returns.
        let mut background = JoinSet::new();
        let heartbeats = self.spawn_background(&mut background);
        let mut pipeline = self.spawn_pipeline();
        let mut maintenance = JoinSet::from_iter(self.maintenance.take());
        let too_late = async {
            self.stop.cancelled().await;
            tokio::time::sleep(self.context.settings.worker.shutdown_timeout).await;
        };
        let ended = tokio::select! {
            biased;
            error = self.context.health.fatal() => Err(error.into()),
            () = end(&mut pipeline) => {
                self.spiders.close().await;
                Ok(())
            }
            Some(ended) = maintenance.join_next() => match ended.map_err(JoinError::try_into_panic) {
                Ok(Fatal(error)) => Err(error.into()),
                Err(Ok(panic)) => resume_unwind(panic),
                Err(Err(_)) => unreachable!("it is cancelled only when this function returns"),
            },
            () = too_late => Ok(()),
        };
        pipeline.shutdown().await;
        self.shut_down(heartbeats, &ended).await;
        ended
    }

    /// Starts what goes on beside the pipeline. Returns the handle of the heartbeats.
    fn spawn_background(&self, background: &mut JoinSet<()>) -> AbortHandle {
        let Self { context, reporter, scheduling, sessions, spiders, watch, frontier, stop, .. } = self;
        let heartbeats = background.spawn(Arc::clone(reporter).heartbeats(stop.clone()));
        background.spawn(Arc::clone(reporter).summaries());
        background.spawn(Arc::clone(reporter).report_standstill());
        background.spawn(Arc::clone(scheduling).renew_in_flight());
        background.spawn(Arc::clone(scheduling).free_in_flight());
        background.spawn(Arc::clone(sessions).run());
        background.spawn(Arc::clone(spiders).reload());
        background.spawn(Arc::clone(watch).run(Arc::clone(frontier), Arc::clone(&context.health)));
        heartbeats
    }

    /// Ends the proxy for programs, releases what the worker still holds, and writes the last entry of the log.
    async fn shut_down(self, heartbeats: AbortHandle, ended: &Result<(), RunError>) {
        self.proxy.end().await;
        // `release` also signs the worker off; no heartbeat may follow.
        heartbeats.abort();
        self.sessions.close().await;
        give_back(&*self.frontier).await;
        let schedules = &self.scheduling.asker.schedules;
        let _ = timeout(LAST_WORD, schedules.in_flight.free(&*schedules.hosts)).await;
        let Counts { done, failed, .. } = self.settler.tally.counts();
        info!(worker = %self.context.id, done, failed, "stopped");
        let log = &self.context.log;
        let entry = match ended {
            Ok(()) => {
                log.entry(LogLevel::Info, format!("the worker has ended: {done} pages done, {failed} failed"))
            }
            Err(error) => log.entry(LogLevel::Fatal, format!("the worker has ended: {error}")),
        };
        let _ = timeout(LAST_WORD, log.write_or_wait(entry)).await;
        self.log.close(LAST_WORD).await;
    }
}

/// Waits for the end of every task. A panic in one of them is passed on.
async fn end(parts: &mut JoinSet<()>) {
    while let Some(ended) = parts.join_next().await {
        if let Err(panicked) = ended
            && let Ok(panic) = panicked.try_into_panic()
        {
            resume_unwind(panic);
        }
    }
}

/// Releases the worker's URLs and tasks, if the servers respond: otherwise these find out that the worker is
/// gone.
async fn give_back(frontier: &dyn Frontier) {
    let error = match timeout(LAST_WORD, frontier.release()).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("it takes longer than {LAST_WORD:?}"),
    };
    warn!(error, "could not give back what is in hand; others take it over when it counts as lost");
}

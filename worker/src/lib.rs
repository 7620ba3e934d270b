//! trawl's worker: takes URLs from a queue, fetches them politely, extracts, stores, settles.
//!
//! A URL passes through these, in order:
//!
//! 1. `claim`: takes the URLs that the engine hands out, and finds each one's spider.
//! 2. `schedule`: waits for everything that a fetch needs: the host's `robots.txt`, a fetch permit, a slot of
//!    the host, one of the host's address, and a permit that pages of other domains leave to it.
//! 3. `fetch::dispatcher`: counts the start, and runs the page.
//! 4. `fetch::page`: the page's `history`, the response cache or a fetch ([`trawl_web`]), on separate threads
//!    (`apart`) if it may keep them busy; then `parse` calls [`trawl_extract`].
//! 5. `store`: puts the page's yield into the sinks of its spider.
//! 6. `settle`: stores how pages ended in the history (`page_ends`), and passes their outcomes and links to
//!    the engine, which makes these permanent.
//!
//! Tasks are claimed, started and run by `tasks`, beside all that, and stored and settled as pages are.
//!
//! Beside them, `background` shows that the worker is alive, and reports the reason if no URL ends
//! (`schedule::standstill`). A port's error that no waiting resolves stops the whole worker
//! ([`Fatal`]), except for that of a sink, which stops only its spider.
//!
//! Requests of spiders' programs go through `proxy`. It and `trial` ask hosts through `polite`.
//!
//! `trial` fetches and reads one page for trying a spider, in no crawl and by the same rules.

mod background;
mod claim;
#[cfg(feature = "cli")]
pub mod cli;
mod empty_fields;
mod fetch;
mod handlers;
mod history;
mod host_log;
mod items_file;
mod job;
mod known_links;
mod latencies;
mod links;
mod page_ends;
mod parse;
mod polite;
mod proxy;
mod schedule;
mod settle;
mod settlement;
mod shared;
mod sink_backlog;
mod spiders;
mod store;
mod tally;
mod tasks;
#[cfg(test)]
mod tests;
mod trial;
mod url_log;
mod wanting;

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use claim::{Claims, CrawlSpiders, SpiderRequests};
use fetch::dispatcher;
use fetch::domains::{Domains, FETCH_THREADS};
use handlers::{Programs, Watch};
use host_log::HostLog;
use known_links::KnownLinks;
use latencies::Latencies;
use parse::Parser;
use polite::Asker;
pub use proxy::HandlerProxy;
use schedule::exchange::SlotExchange;
use schedule::robots_memory::RobotsMemory;
use schedule::standstill::Standstill;
use schedule::{Exits, Scheduler};
use shared::Shared;
use spiders::Spiders;
pub use spiders::Unready;
use tally::{Counts, Tally};
use tasks::{TaskRunner, Tasks};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};
use trawl_common::fleet_log::{LogTargets, LogWriter};
use trawl_common::health::Health;
use trawl_common::host_schedules::HostSchedules;
use trawl_common::logs::LogLevel;
use trawl_common::names::WorkerId;
use trawl_common::politeness::addresses::AddressRate;
use trawl_common::politeness::ceiling::Ceiling;
use trawl_common::ports::{self, Fatal, Joined, Joining, Ports};
use trawl_common::settings::Settings;
use trawl_common::spider::folder::Folder;
use trawl_web::Threads;
pub use trial::{PageReader, TaskTrial, Trials};
use url_log::UrlLog;
use wanting::Wanting;

/// The reason why a worker could not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The default spider is unusable.
    #[error(transparent)]
    Spider(#[from] Unready),
    /// The system provides no threads.
    #[error("cannot start threads that fetch and parse: {0}")]
    Threads(#[source] std::io::Error),
    /// A server answered the first call with an error, or a later one with an error that no waiting resolves.
    #[error(transparent)]
    Port(#[from] ports::Error),
}

/// Maximum number of batches of jobs waiting for their starts to be counted. Each job has a fetch permit.
const STARTS_AHEAD: usize = 4;

/// Maximum number of outcomes waiting to be settled.
const SETTLEMENTS_AHEAD: usize = 1024;

/// The number of tasks to hold for each one run at once, so that urgent ones can come first.
const TASKS_AHEAD: u16 = 4;
/// Maximum number of tasks to hold: each may have a megabyte.
const MAX_TASKS_AHEAD: u16 = 64;

/// Returns the number of tasks that a worker holds if it runs `at_once` of them.
fn tasks_ahead(at_once: u16) -> u16 {
    at_once.saturating_mul(TASKS_AHEAD).min(MAX_TASKS_AHEAD)
}

/// The time that a worker may take to release its work after the shutdown timeout.
const LAST_WORD: Duration = Duration::from_secs(5);

/// Works until `stop`, using the spider files in `folder`; then finishes started work within
/// `worker.shutdown_timeout` and releases the rest. Reports problems to `health`. Cancels `stop` itself when
/// the worker is drained.
pub async fn run(
    ports: Ports,
    settings: Settings,
    folder: Folder,
    id: WorkerId,
    health: Arc<Health>,
    stop: CancellationToken,
) -> Result<(), RunError> {
    let at_once = settings.worker.handlers;
    let programs = |_: &Asker| {
        let runner: Arc<dyn TaskRunner> = Arc::new(Programs);
        (at_once > 0).then_some((runner, at_once))
    };
    run_with(ports, settings, folder, id, health, stop, programs).await
}

/// Like [`run`], with a function that returns the task runner, if there is one, and the number of tasks to
/// run at once. It is given the client through which programs ask hosts.
async fn run_with(
    ports: Ports,
    settings: Settings,
    folder: Folder,
    id: WorkerId,
    health: Arc<Health>,
    stop: CancellationToken,
    runner: impl FnOnce(&Asker) -> Option<(Arc<dyn TaskRunner>, u16)>,
) -> Result<(), RunError> {
    let threads = Threads::start(FETCH_THREADS).map_err(RunError::Threads)?;
    let (log, targets) = log_of(&ports, &settings, &id);
    let written = CancellationToken::new();
    // Log entries are written until this function ends, and its last ones a moment longer.
    let writing = AbortOnDropHandle::new(tokio::spawn(targets.run(written.clone())));
    health.log_to(log.reporter());
    let sink_factory = Arc::clone(&ports.sink_factory);
    let schedules = HostSchedules {
        hosts: Arc::clone(&ports.hosts),
        health: Arc::clone(&health),
        in_flight: Arc::default(),
        // The same expiry as a URL's lease.
        lapse: settings.recovery.lost_after / 4,
        ceiling: Arc::new(Ceiling::of(settings.fetch.max_rate)),
        addresses: Arc::new(AddressRate::new(settings.politeness.address_rate)),
    };
    let (robots, exchange) = (Arc::<RobotsMemory>::default(), Arc::<SlotExchange>::default());
    let host_log = Arc::new(HostLog::new(log.clone()));
    let asker = Asker {
        settings: Arc::new(settings.clone()),
        schedules: schedules.clone(),
        robots: Arc::clone(&robots),
        exchange: Arc::clone(&exchange),
        host_log: Some(Arc::clone(&host_log)),
    };
    let runner = runner(&asker);
    let proxy = HandlerProxy::of(asker);
    let _proxy_ends = proxy.until_dropped();
    let spiders =
        Spiders::new(&settings, folder, sink_factory, threads.clone(), Arc::clone(&proxy), log.clone());
    let spiders = Arc::new(spiders?);
    let Joined { frontier, maintenance } = ports.engine.join(Joining {
        worker: id.clone(),
        settings: settings.clone(),
        health: Arc::clone(&health),
        requests: Arc::new(SpiderRequests::new(Arc::clone(&spiders))),
        tasks: runner.as_ref().map_or(0, |(_, at_once)| tasks_ahead(*at_once)),
        stop: stop.clone(),
    });
    let shared = Arc::new(Shared {
        spiders,
        frontier,
        parser: Parser::start(settings.worker.page_memory.as_u64() / 2).map_err(RunError::Threads)?,
        robots,
        schedules,
        exchange,
        domains: Arc::new(Domains::new(&settings.worker)),
        threads,
        health,
        tally: Tally::default(),
        latencies: Latencies::default(),
        log: log.clone(),
        url_log: UrlLog::new(&settings, log.clone()),
        host_log,
        standstill: Standstill::default(),
        wanting: Wanting::default(),
        known_links: KnownLinks::default(),
        watch: Watch::default(),
        id,
        ports,
        settings,
    });
    background::first_heartbeat(&shared).await?;
    let version = env!("CARGO_PKG_VERSION");
    log.write(log.entry(LogLevel::Info, format!("the worker has started, version {version}")));
    // Aborted when this function returns.
    let mut background = JoinSet::new();
    let heartbeats = background.spawn(background::heartbeats(Arc::clone(&shared), stop.clone()));
    background.spawn(background::renew_in_flight(Arc::clone(&shared)));
    background.spawn(background::reload_spiders(Arc::clone(&shared)));
    background.spawn(background::summaries(Arc::clone(&shared)));
    background.spawn(background::look_at_programs(Arc::clone(&shared)));
    background.spawn(background::watch_programs(Arc::clone(&shared)));
    background.spawn(background::report_standstill(Arc::clone(&shared)));
    let schedules = shared.schedules.clone();
    background.spawn(async move { match schedules.in_flight.freeing(&*schedules.hosts).await {} });

    let (ready, to_start) = mpsc::channel(STARTS_AHEAD);
    let (store, to_store) = mpsc::channel(SETTLEMENTS_AHEAD);
    let (settle, to_settle) = mpsc::channel(SETTLEMENTS_AHEAD);
    let crawl_spiders = CrawlSpiders::new(Arc::clone(&shared));
    let claims = Claims::new(Arc::clone(&shared), crawl_spiders.clone(), store.clone());
    let exits = Exits { ready, settle: store.clone() };
    let scheduler = Scheduler::new(Arc::clone(&shared), exits, claims, stop.clone());
    // Each ends when the one before it has ended and its channel is empty; all are aborted when this function
    // returns.
    let mut pipeline = JoinSet::new();
    pipeline.spawn(scheduler.run());
    if let Some((runner, at_once)) = runner {
        let (shared, settle) = (Arc::clone(&shared), store.clone());
        let suspects = Arc::new(Semaphore::new(1));
        let tasks = Tasks { shared, runner, spiders: crawl_spiders, at_once, settle, suspects };
        pipeline.spawn(tasks.run(stop.clone()));
    }
    pipeline.spawn(dispatcher::run(Arc::clone(&shared), to_start, store, stop.clone()));
    pipeline.spawn(store::run(Arc::clone(&shared), to_store, settle));
    pipeline.spawn(settle::run(Arc::clone(&shared), to_settle));
    let too_late = async {
        stop.cancelled().await;
        tokio::time::sleep(shared.settings.worker.shutdown_timeout).await;
    };
    let mut maintenance = JoinSet::from_iter([maintenance]);
    let ended = tokio::select! {
        biased;
        error = shared.health.fatal() => Err(error.into()),
        () = end(&mut pipeline) => {
            shared.spiders.close().await;
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
    proxy.end().await;
    // `release` also signs the worker off; no heartbeat may follow.
    heartbeats.abort();
    give_back(&shared).await;
    let schedules = &shared.schedules;
    let _ = tokio::time::timeout(LAST_WORD, schedules.in_flight.free(&*schedules.hosts)).await;
    tell_end(&shared, &log, &ended).await;
    written.cancel();
    let _ = tokio::time::timeout(LAST_WORD, writing).await;
    ended
}

/// Returns this worker's writer to the fleet's log, and the log's destinations.
fn log_of(ports: &Ports, settings: &Settings, id: &WorkerId) -> (LogWriter, LogTargets) {
    let logs = (settings.log.keep > 0).then(|| Arc::clone(&ports.logs));
    let history = ports.history.clone().filter(|_| settings.history.logs);
    LogWriter::new(id, logs, history)
}

/// Reports in both logs how the worker ended.
async fn tell_end(shared: &Shared, log: &LogWriter, ended: &Result<(), RunError>) {
    let Counts { done, failed, .. } = shared.tally.counts();
    info!(worker = %shared.id, done, failed, "stopped");
    let entry = match ended {
        Ok(()) => {
            log.entry(LogLevel::Info, format!("the worker has ended: {done} pages done, {failed} failed"))
        }
        Err(error) => log.entry(LogLevel::Fatal, format!("the worker has ended: {error}")),
    };
    let _ = tokio::time::timeout(LAST_WORD, log.write_or_wait(entry)).await;
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
async fn give_back(shared: &Shared) {
    let error = match tokio::time::timeout(LAST_WORD, shared.frontier.release()).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("it takes longer than {LAST_WORD:?}"),
    };
    warn!(error, "could not give back what is in hand; others take it over when it counts as lost");
}

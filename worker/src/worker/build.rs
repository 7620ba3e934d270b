//! The start of a worker: each of its parts is made, with what it owns.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use trawl_common::health::Health;
use trawl_common::names::WorkerId;
use trawl_common::ports::{Join, Joined, Joining, WorkerPorts};
use trawl_common::settings::Settings;
use trawl_common::spider::folder::Folder;
use trawl_web::Threads;

use super::fleet_log::FleetLog;
use super::{RunError, Worker};
use crate::claim::SpiderRequests;
use crate::context::Context;
use crate::fetch::Fetching;
use crate::fetch::known_links::KnownLinks;
use crate::parse::Parser;
use crate::programs::Watch;
use crate::proxy::HandlerProxy;
use crate::render::Renderer;
use crate::schedule::Scheduling;
use crate::schedule::domains::FETCH_THREADS;
use crate::schedule::sessions::Sessions;
use crate::settle::{Retries, Settler};
use crate::spiders::{ProxyForPrograms, Spiders};
use crate::tasks::{TaskRunner, tasks_ahead};
use crate::telemetry::background::Reporter;
use crate::telemetry::idle_reasons::IdleReasons;
use crate::telemetry::latencies::Latencies;
use crate::telemetry::tally::Tally;
use crate::telemetry::url_log::UrlLog;

impl Worker {
    /// Makes the parts of a worker, and joins the engine. `tasks` has the task runner, if there is one, and the number
    /// of tasks to run at once.
    pub(crate) fn build(
        ports: WorkerPorts,
        settings: Settings,
        folder: Folder,
        id: WorkerId,
        health: Arc<Health>,
        stop: CancellationToken,
        tasks: Option<(Arc<dyn TaskRunner>, u16)>,
    ) -> Result<Self, RunError> {
        let threads = Threads::start(FETCH_THREADS).map_err(RunError::Threads)?;
        let log = FleetLog::start(&ports, &settings, &id);
        health.log_to(log.writer.reporter());
        let settings = Arc::new(settings);
        let context = Arc::new(Context { id, settings, health, log: log.writer.clone() });
        let idle_reasons = Arc::<IdleReasons>::default();
        let parser = Parser::start(context.settings.worker.half_page_memory());
        let parser = Arc::new(parser.map_err(RunError::Threads)?);
        let scheduling =
            Arc::new(Scheduling::new(&context, Arc::clone(&ports.hosts), Arc::clone(&idle_reasons)));
        let stores = (Arc::clone(&ports.sessions), Arc::clone(&ports.control));
        let sessions = Arc::new(Sessions::new(&scheduling, stores, Arc::clone(&parser)));
        let proxy = HandlerProxy::new(scheduling.asker.clone());
        let proxy_ends = proxy.until_dropped();
        let renderer = Renderer::new(&proxy);
        let browsers = Arc::clone(renderer.counts());
        let spiders = load_spiders(&context, folder, &ports, &threads, &proxy)?;
        let at_once = tasks.as_ref().map(|(_, at_once)| *at_once);
        let Joined { frontier, maintenance } = join(&context, &*ports.engine, &spiders, at_once, &stop);
        let (watch, tally, known_links, latencies): (
            Arc<Watch>,
            Arc<Tally>,
            Arc<KnownLinks>,
            Arc<Latencies>,
        ) = Default::default();
        let url_log = Arc::new(UrlLog::new(&context.settings, context.log.clone()));
        let fetching = Fetching {
            context: Arc::clone(&context),
            scheduling: Arc::clone(&scheduling),
            frontier: Arc::clone(&frontier),
            spiders: Arc::clone(&spiders),
            pages: ports.pages,
            cache: ports.cache,
            parser,
            sessions: Arc::clone(&sessions),
            threads,
            renderer,
            latencies: Arc::clone(&latencies),
            known_links: Arc::clone(&known_links),
            url_log: Arc::clone(&url_log),
            watch: Arc::clone(&watch),
        };
        let settler = Settler {
            context: Arc::clone(&context),
            frontier: Arc::clone(&frontier),
            history: ports.history,
            ended_tasks: log.ended_tasks.clone(),
            tally: Arc::clone(&tally),
            known_links,
            url_log,
            idle_reasons: Arc::clone(&idle_reasons),
            lateness: Arc::clone(&scheduling.lateness),
            retries: Retries::default(),
        };
        let reporter = Reporter {
            context: Arc::clone(&context),
            frontier: Arc::clone(&frontier),
            tally,
            latencies,
            idle_reasons: Arc::clone(&idle_reasons),
            watch: Arc::clone(&watch),
            spiders: Arc::clone(&spiders),
            browsers,
        };
        Ok(Self {
            context,
            log,
            frontier,
            texts: ports.texts,
            spiders,
            scheduling,
            sessions,
            fetching: Arc::new(fetching),
            settler: Arc::new(settler),
            idle_reasons,
            reporter: Arc::new(reporter),
            watch,
            tasks,
            proxy,
            _proxy_ends: proxy_ends,
            maintenance: Some(maintenance),
            stop,
        })
    }
}

/// Joins the engine with at most `at_once` tasks at a time, if the worker runs any.
fn join(
    context: &Context,
    engine: &dyn Join,
    spiders: &Arc<Spiders>,
    at_once: Option<u16>,
    stop: &CancellationToken,
) -> Joined {
    engine.join(Joining {
        worker: context.id.clone(),
        settings: Settings::clone(&context.settings),
        health: Arc::clone(&context.health),
        requests: Arc::new(SpiderRequests::new(Arc::clone(spiders))),
        tasks: at_once.map_or(0, tasks_ahead),
        stop: stop.clone(),
    })
}

fn load_spiders(
    context: &Context,
    folder: Folder,
    ports: &WorkerPorts,
    threads: &Threads,
    proxy: &Arc<HandlerProxy>,
) -> Result<Arc<Spiders>, RunError> {
    let (sinks, proxy) = (Arc::clone(&ports.sink_factory), Arc::clone(proxy));
    let proxy: ProxyForPrograms = Box::new(move |spider, fetcher| proxy.access(spider, fetcher));
    let (grants, log) = (Arc::clone(&ports.grants), context.log.clone());
    Ok(Arc::new(Spiders::new(&context.settings, folder, sinks, grants, threads.clone(), proxy, log)?))
}

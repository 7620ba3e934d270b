//! The embedded engine: every port in this process, over one SQLite file, with no server at all.
//!
//! The transitions are those of `trawl_common::frontier`; lanes and parking are columns of the record. The engine is
//! small because a record and its wake-up are one row: admitting a URL publishes it, so there is no outbox, nothing to
//! confirm and nothing to reconcile.
//!
//! **Durable:** records, stats, the set of seen URLs, the list of failed URLs, the page history, sessions, and the
//! hosts that are blocked or in a back-off. A killed process loses nothing that a call has returned for. A power cut
//! may lose the last moments before it, and leaves the file consistent as of the moment before those (`synchronous =
//! NORMAL`).
//!
//! **Not durable:** record holders, leases, the next slots of hosts and cached responses live in memory, and are gone
//! with the process. This is intended: only one process at a time may change the file, so the one that opens it knows
//! that every former holder is gone, and that the records they held are available again. Other processes may read it.
//! If the file refuses a change, file and memory are left as before: `store` undoes the transaction's changes to
//! memory.

mod admission;
mod claim;
mod crawls;
mod engine;
mod frontier;
mod hosts;
mod jobs;
mod logs;
mod pages;
mod projects;
mod records;
mod runners;
mod seen;
mod sessions;
mod settle;
mod store;

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::Notify;
use trawl_common::clock;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{
    Cache, Control, Engine, HostControl, Hosts, Jobs, Logs, PageHistories, Ports, Projects, Result, Runners,
    Schedules, Sessions, SinkFactory, SpiderStore, Stats,
};
use trawl_common::project::SealingKey;
use trawl_common::projects::Keeper;
use trawl_common::settings;
use trawl_common::time::UnixMs;

use self::crawls::control::EmbeddedControl;
use self::crawls::crawl_stats::Clock;
use self::crawls::stats::{EmbeddedStats, LastBeat};
use self::engine::EmbeddedEngine;
use self::hosts::{Known, MemoryHosts};
use self::jobs::EmbeddedJobs;
use self::jobs::schedules::EmbeddedSchedules;
use self::jobs::spider_store::EmbeddedSpiderStore;
use self::logs::{EmbeddedLogs, Keep};
use self::pages::EmbeddedPages;
use self::pages::cache::MemoryCache;
use self::projects::EmbeddedProjects;
use self::runners::EmbeddedRunners;
use self::sessions::EmbeddedSessions;
use self::store::Store;
use self::store::resuming;
use self::store::schema::{self, State};

/// The adapters of one embedded engine. The file is closed when the last of them is dropped, or by [`Embedded::close`].
pub struct Embedded {
    store: Arc<Store>,
    clock: Clock,
    last_beat: Arc<LastBeat>,
    hosts: Arc<MemoryHosts>,
    cache: Arc<MemoryCache>,
    submitted: Arc<Notify>,
    jobs_per_spider: NonZeroU32,
    keep_logs: Keep,
    key: Option<SealingKey>,
}

impl Embedded {
    /// Opens the state file at `path`, or creates it.
    ///
    /// Fails with `Busy` while another process has it open, with `Refused` if it is not a state file of
    /// trawl or was written by a newer one, and with `Unavailable` if it cannot be read or written.
    pub fn open(path: &Path) -> Result<Self> {
        clock::go_on();
        let mut state = schema::open(path)?;
        resuming::resume(&mut state.db, UnixMs::now()).map_err(|fault| schema::unusable(fault, path))?;
        Self::over(state, Clock::Runs)
    }

    /// Opens the state file at `path` for reading, while another process may be changing it. Calls that would change
    /// anything fail.
    ///
    /// Fails with `Refused` if it is not a state file of trawl or was written by an older or newer one, and with
    /// `Unavailable` if it cannot be read.
    pub fn watch(path: &Path) -> Result<Self> {
        Self::over(schema::watch(path)?, Clock::AsTouched)
    }

    /// Returns an engine that keeps its state in memory only.
    pub fn in_memory() -> Result<Self> {
        Self::over(schema::in_memory()?, Clock::Runs)
    }

    fn over(state: State, clock: Clock) -> Result<Self> {
        let mut known = Known::read(&state.db)?;
        if let Clock::Runs = clock {
            known.forget_past(&state.db)?;
        }
        let store = Arc::new(Store::start(state)?);
        let hosts = Arc::new(MemoryHosts::new(store.clone(), known));
        let (last_beat, cache, submitted) = Default::default();
        let jobs_per_spider = settings::Jobs::default().per_spider;
        let keep_logs = Keep::new(&settings::Log::default());
        Ok(Self { store, clock, hosts, last_beat, cache, submitted, jobs_per_spider, keep_logs, key: None })
    }

    /// Closes the state file, even if adapters are still in use: all that was written is in the one file then. Later
    /// calls fail.
    pub async fn close(&self) {
        self.store.close().await;
    }

    /// Sets how many jobs each spider runs at a time.
    #[must_use]
    pub fn with_jobs(self, settings: &settings::Jobs) -> Self {
        Self { jobs_per_spider: settings.per_spider, ..self }
    }

    /// Sets how much the log keeps.
    #[must_use]
    pub fn with_log(self, settings: &settings::Log) -> Self {
        Self { keep_logs: Keep::new(settings), ..self }
    }

    /// Sets the key that opens the secrets of projects.
    #[must_use]
    pub fn with_key(self, key: Option<SealingKey>) -> Self {
        Self { key, ..self }
    }

    /// Returns the sources that a crawl was started with, as passed to [`Embedded::note_sources`].
    pub async fn sources(&self, crawl: &CrawlRef) -> Result<Option<String>> {
        let crawl = crawl.clone();
        self.store.call(move |db, _| crawls::sources(db, &crawl)).await
    }

    /// Stores the sources that a crawl is started with.
    pub async fn note_sources(&self, crawl: &CrawlRef, sources: &str) -> Result<()> {
        let (crawl, sources) = (crawl.clone(), sources.to_owned());
        self.store.call(move |db, _| crawls::note_sources(db, &crawl, &sources)).await
    }

    /// Returns all ports that producer and worker need, with these sinks.
    pub fn ports(&self, sink_factory: Arc<dyn SinkFactory>) -> Ports {
        Ports {
            engine: self.engine(),
            stats: self.stats(),
            hosts: self.hosts(),
            cache: self.cache(),
            pages: self.pages(),
            sessions: self.sessions(),
            jobs: self.jobs(),
            spider_store: self.spider_store(),
            schedules: self.schedules(),
            grants: Arc::new(Keeper::new(self.projects(), self.key.clone())),
            control: self.control(),
            sink_factory,
            logs: self.logs(),
            ended_tasks: self.ended_tasks(),
            // The state file keeps the history.
            history: None,
        }
    }

    /// Returns the engine, which stores URLs and hands them out.
    pub fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(EmbeddedEngine::new(self.store.clone(), self.last_beat.clone()))
    }

    /// Returns the stats of crawls.
    pub fn stats(&self) -> Arc<dyn Stats> {
        Arc::new(EmbeddedStats::new(self.store.clone(), self.clock, self.last_beat.clone()))
    }

    /// Returns the control of crawls.
    pub fn control(&self) -> Arc<dyn Control> {
        Arc::new(EmbeddedControl::new(self.store.clone(), self.last_beat.clone()))
    }

    /// Returns the jobs.
    pub fn jobs(&self) -> Arc<dyn Jobs> {
        Arc::new(EmbeddedJobs::new(self.store.clone(), self.submitted.clone(), self.jobs_per_spider))
    }

    /// Returns the log.
    pub fn logs(&self) -> Arc<dyn Logs> {
        self.logs_in("logs")
    }

    /// The tasks that have ended lately.
    pub fn ended_tasks(&self) -> Arc<dyn Logs> {
        self.logs_in("ended_tasks")
    }

    fn logs_in(&self, table: &'static str) -> Arc<dyn Logs> {
        Arc::new(EmbeddedLogs { store: self.store.clone(), table, keep: self.keep_logs })
    }

    /// Returns the store of deployed spiders.
    pub fn spider_store(&self) -> Arc<dyn SpiderStore> {
        Arc::new(EmbeddedSpiderStore::new(self.store.clone()))
    }

    /// Returns the state of cron schedules.
    pub fn schedules(&self) -> Arc<dyn Schedules> {
        Arc::new(EmbeddedSchedules(self.store.clone()))
    }

    /// Returns the host schedules.
    pub fn hosts(&self) -> Arc<dyn Hosts> {
        self.hosts.clone()
    }

    /// Returns the port that lists, blocks and unblocks hosts.
    pub fn host_control(&self) -> Arc<dyn HostControl> {
        self.hosts.clone()
    }

    /// Returns the response cache.
    pub fn cache(&self) -> Arc<dyn Cache> {
        self.cache.clone()
    }

    /// Returns the sessions of spiders.
    pub fn sessions(&self) -> Arc<dyn Sessions> {
        Arc::new(EmbeddedSessions(self.store.clone()))
    }

    /// Returns the runners.
    pub fn runners(&self) -> Arc<dyn Runners> {
        Arc::new(EmbeddedRunners(self.store.clone()))
    }

    /// Returns the projects.
    pub fn projects(&self) -> Arc<dyn Projects> {
        Arc::new(EmbeddedProjects(self.store.clone()))
    }

    /// Returns the page history.
    pub fn pages(&self) -> Arc<dyn PageHistories> {
        Arc::new(EmbeddedPages::new(self.store.clone()))
    }
}

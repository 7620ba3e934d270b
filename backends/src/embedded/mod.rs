//! The embedded engine: every port in this process, over one SQLite file, with no server at all.
//!
//! The transitions are those of `trawl_common::frontier`; lanes and parking are columns of the record. What makes it
//! small is that a record and its wake-up are one row: to admit a URL is to publish it, so there is no
//! outbox, nothing to confirm and nothing to reconcile.
//!
//! **What is durable.** Records, stats, the set of URLs seen, the list of those that failed, what is remembered of pages,
//! and which hosts are blocked or want to be left alone. A killed process loses
//! nothing that a call has returned for. A power cut may lose the last moments before it, and leaves the
//! file consistent as of the moment before those (`synchronous = NORMAL`).
//!
//! **What is not.** Who holds a record, leases, the next slots of hosts and cached responses live in
//! memory. They die with the process, and so they should: one process at a time may change the file, so
//! whoever opens it knows that every former holder is gone, and what was in hand is available again. Others may look on.
//! When the file refuses a change, both are as they were before: `store` takes back what a transaction did to memory.
//!
//! **Layers.** A file knows those of lower lines alone.
//!
//! ```text
//! engine
//! frontier  session  control
//! settle
//! admission  claiming  commands  resuming
//! corrupt
//! ending
//! transitions
//! stats  pages  hosts  jobs  schedules  spider_store  logs
//! store
//! dispatch  failures
//! records  crawl_stats  stats_delta
//! crawls  schema  seen  holdings  leases
//! fields
//! address  cache  error  file_lock  transactional_map
//! ```

mod address;
mod admission;
mod cache;
mod claiming;
mod commands;
mod control;
mod corrupt;
mod crawl_stats;
mod crawls;
mod dispatch;
mod ending;
mod engine;
mod error;
mod failures;
mod fields;
mod file_lock;
mod forgetting;
mod frontier;
mod holdings;
mod hosts;
mod jobs;
mod lanes;
mod leases;
mod logs;
mod pages;
mod payloads;
mod places;
mod records;
mod resuming;
mod schedules;
mod schema;
mod seen;
mod session;
mod settle;
mod sources;
mod spider_store;
mod stats;
mod stats_delta;
mod store;
mod tasks;
mod transactional_map;
mod transitions;

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::Notify;
use trawl_common::clock;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{
    Cache, Control, Engine, HostControl, Hosts, Jobs, Logs, Pages, Ports, Result, Schedules, SinkFactory,
    SpiderStore, Stats,
};
use trawl_common::settings;
use trawl_common::time::UnixMs;

use self::cache::MemoryCache;
use self::control::EmbeddedControl;
use self::crawl_stats::Clock;
use self::engine::EmbeddedEngine;
use self::hosts::{Known, MemoryHosts};
use self::jobs::EmbeddedJobs;
use self::logs::{EmbeddedLogs, Keep};
use self::pages::EmbeddedPages;
use self::schedules::EmbeddedSchedules;
use self::schema::State;
use self::spider_store::EmbeddedSpiderStore;
use self::stats::{EmbeddedStats, LastBeat};
use self::store::Store;

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

    /// Looks into the state file at `path`, which another process may be changing meanwhile. What changes anything fails.
    ///
    /// Fails with `Refused` if it is not a state file of trawl or was written by an older or newer one, and with
    /// `Unavailable` if it cannot be read.
    pub fn watch(path: &Path) -> Result<Self> {
        Self::over(schema::watch(path)?, Clock::AsTouched)
    }

    /// An engine that keeps nothing beyond its own life.
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
        let keep_logs = Keep::of(&settings::Log::default());
        Ok(Self { store, clock, hosts, last_beat, cache, submitted, jobs_per_spider, keep_logs })
    }

    /// Closes the state file, whoever still has one of the adapters: all that was written is in the one file then. Calls that come later
    /// fail.
    pub async fn close(&self) {
        self.store.close().await;
    }

    /// The same, where each spider runs as many jobs at a time as `settings` say.
    #[must_use]
    pub fn with_jobs(self, settings: &settings::Jobs) -> Self {
        Self { jobs_per_spider: settings.per_spider, ..self }
    }

    /// The same, where the log keeps as much as `settings` say.
    #[must_use]
    pub fn with_log(self, settings: &settings::Log) -> Self {
        Self { keep_logs: Keep::of(settings), ..self }
    }

    /// What a crawl was begun with, as [`Embedded::note_sources`] had it.
    pub async fn sources(&self, crawl: &CrawlRef) -> Result<Option<String>> {
        let crawl = crawl.clone();
        self.store.call(move |db, _| crawls::sources(db, &crawl)).await
    }

    /// Notes what a crawl is begun with.
    pub async fn note_sources(&self, crawl: &CrawlRef, sources: &str) -> Result<()> {
        let (crawl, sources) = (crawl.clone(), sources.to_owned());
        self.store.call(move |db, _| crawls::note_sources(db, &crawl, &sources)).await
    }

    /// All that producer and worker need, with these sinks.
    pub fn ports(&self, sink_factory: Arc<dyn SinkFactory>) -> Ports {
        Ports {
            engine: self.engine(),
            stats: self.stats(),
            hosts: self.hosts(),
            cache: self.cache(),
            pages: self.pages(),
            jobs: self.jobs(),
            spider_store: self.spider_store(),
            schedules: self.schedules(),
            control: self.control(),
            sink_factory,
            logs: self.logs(),
            // What is kept is in the state file.
            history: None,
        }
    }

    /// What remembers its URLs, and hands them out.
    pub fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(EmbeddedEngine::new(self.store.clone(), self.last_beat.clone()))
    }

    /// What people see of crawls.
    pub fn stats(&self) -> Arc<dyn Stats> {
        Arc::new(EmbeddedStats::new(self.store.clone(), self.clock, self.last_beat.clone()))
    }

    /// Control of the crawls.
    pub fn control(&self) -> Arc<dyn Control> {
        Arc::new(EmbeddedControl::new(self.store.clone(), self.last_beat.clone()))
    }

    /// The jobs.
    pub fn jobs(&self) -> Arc<dyn Jobs> {
        Arc::new(EmbeddedJobs::new(self.store.clone(), self.submitted.clone(), self.jobs_per_spider))
    }

    /// The log.
    pub fn logs(&self) -> Arc<dyn Logs> {
        Arc::new(EmbeddedLogs { store: self.store.clone(), keep: self.keep_logs })
    }

    /// The spiders that were deployed.
    pub fn spider_store(&self) -> Arc<dyn SpiderStore> {
        Arc::new(EmbeddedSpiderStore::new(self.store.clone()))
    }

    /// What is remembered of schedules.
    pub fn schedules(&self) -> Arc<dyn Schedules> {
        Arc::new(EmbeddedSchedules(self.store.clone()))
    }

    /// The hosts' schedules.
    pub fn hosts(&self) -> Arc<dyn Hosts> {
        self.hosts.clone()
    }

    /// What people see of hosts, and can do to them.
    pub fn host_control(&self) -> Arc<dyn HostControl> {
        self.hosts.clone()
    }

    /// The response cache.
    pub fn cache(&self) -> Arc<dyn Cache> {
        self.cache.clone()
    }

    /// What is remembered of pages.
    pub fn pages(&self) -> Arc<dyn Pages> {
        Arc::new(EmbeddedPages::new(self.store.clone()))
    }
}

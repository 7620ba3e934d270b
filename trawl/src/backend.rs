//! The backend of the commands: the fleet's servers, or the state file of `trawl crawl`.

use std::fmt::Display;
use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Subcommand;
use futures::FutureExt;
use trawl_api::{ForRunners, Tip};
use trawl_backends::embedded::Embedded;
use trawl_backends::fleet;
use trawl_backends::rabbitmq::ItemStream;
use trawl_backends::redis::{self, Link, RedisLogs, RedisPages, RedisProjects, RedisRecords, RedisRunners};
use trawl_backends::sinks::Sinks;
use trawl_cli::{CrawlArg, DeadLetters, Fail, Global};
use trawl_common::cancel::cancel_crawl;
use trawl_common::explain::Explainer;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::jobs::{Job, JobStatus, Problem};
use trawl_common::names::{CrawlId, CrawlRef, WorkerId};
use trawl_common::ports::{
    Control, Engine, Error, HostControl, Hosts, Items, Jobs, Logs, PageHistories, Projects, Runners,
    Schedules, SpiderStore, Stats, WorkerPorts,
};
use trawl_common::project::{Source, Wanted};
use trawl_common::settings::Settings;
use trawl_handlers::{Supervisor, checkout};

use crate::state::{as_argument, default_sinks};

/// The option that selects the backend.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Where {
    /// Look into the state file FILE of `trawl crawl`, not at the fleet
    #[arg(long, value_name = "FILE", global = true)]
    state: Option<PathBuf>,
}

/// The arguments of a command that has subcommands, and the backend it applies to.
#[derive(clap::Args)]
pub(crate) struct Subcommands<C: Subcommand> {
    #[command(subcommand)]
    pub(crate) command: C,
    #[command(flatten)]
    pub(crate) place: Where,
}

impl Where {
    /// Whether the backend is a state file.
    pub(crate) fn is_file(&self) -> bool {
        self.state.is_some()
    }
}

/// Access to crawls, hosts, jobs, spiders and logs.
pub(crate) struct Backend {
    pub(crate) stats: Arc<dyn Stats>,
    pub(crate) control: Arc<dyn Control>,
    pub(crate) hosts: Arc<dyn HostControl>,
    /// The times at which hosts may be asked.
    pub(crate) schedules_of_hosts: Arc<dyn Hosts>,
    pub(crate) jobs: Arc<dyn Jobs>,
    pub(crate) spider_store: Arc<dyn SpiderStore>,
    pub(crate) schedules: Arc<dyn Schedules>,
    pub(crate) logs: Arc<dyn Logs>,
    /// The tasks that have ended lately.
    pub(crate) ended_tasks: Arc<dyn Logs>,
    pub(crate) settings: Settings,
    engine: EngineAt,
    place: Where,
    pub(crate) global: Global,
}

/// The place of the engine.
enum EngineAt {
    /// In a state file.
    File(Embedded),
    /// On a fleet's servers.
    Servers(Arc<RedisRecords>, Link),
}

impl Backend {
    /// Opens the backend for a command that changes something: no other process may have the state file open.
    pub(crate) async fn open(global: &Global, place: &Where) -> Result<Self, Fail> {
        Self::with(global, place, Embedded::open).await
    }

    /// Opens the backend for a command that only reads: the crawl may be running.
    pub(crate) async fn look(global: &Global, place: &Where) -> Result<Self, Fail> {
        Self::with(global, place, Embedded::watch).await
    }

    async fn with(
        global: &Global,
        place: &Where,
        open: impl Fn(&Path) -> Result<Embedded, Error>,
    ) -> Result<Self, Fail> {
        let settings = global.load(&global.source())?;
        let Some(file) = &place.state else { return Self::of_fleet(settings, global).await };
        if !file.exists() {
            return Err(Fail::usage(format!("{}: there is no such state file", file.display())));
        }
        let key = settings.secrets.key().map_err(Fail::usage)?;
        let store = open(file).map_err(Fail::usage)?.with_jobs(&settings.jobs).with_log(&settings.log);
        let store = store.with_key(key);
        Ok(Self {
            stats: store.stats(),
            control: store.control(),
            hosts: store.host_control(),
            schedules_of_hosts: store.hosts(),
            jobs: store.jobs(),
            spider_store: store.spider_store(),
            schedules: store.schedules(),
            logs: store.logs(),
            ended_tasks: store.ended_tasks(),
            settings,
            engine: EngineAt::File(store),
            place: place.clone(),
            global: global.clone(),
        })
    }

    /// Connects to the fleet with settings that are loaded already.
    pub(crate) async fn of_fleet(settings: Settings, global: &Global) -> Result<Self, Fail> {
        let redis = redis::connect(&settings.redis).await?;
        redis::check_schema(&redis).await?;
        let (records, hosts) = fleet::records_of(&settings, redis.clone())?;
        records.follow_clock().await?;
        let fleet::Asked { jobs, spider_store, schedules, .. } = fleet::asked_of(&settings, redis.clone())?;
        let logs = Arc::new(RedisLogs::new(redis.clone(), &settings.log));
        let ended_tasks = Arc::new(RedisLogs::of_ended_tasks(redis.clone(), &settings.log));
        let schedules_of_hosts = Arc::clone(&hosts) as Arc<dyn Hosts>;
        let (stats, control, global) = (records.clone(), records.clone(), global.clone());
        let (engine, place) = (EngineAt::Servers(records, redis), Where::default());
        Ok(Self {
            stats,
            control,
            hosts,
            schedules_of_hosts,
            jobs,
            spider_store,
            schedules,
            logs,
            ended_tasks,
            settings,
            engine,
            place,
            global,
        })
    }

    /// Returns the engine. On a fleet, this connects to the broker.
    pub(crate) async fn engine(&self) -> Result<Arc<dyn Engine>, Fail> {
        match &self.engine {
            EngineAt::File(store) => Ok(store.engine()),
            EngineAt::Servers(records, redis) => {
                Ok(fleet::engine_of(&self.settings, Arc::clone(records), redis.clone()).await?)
            }
        }
    }

    /// Returns the runners.
    pub(crate) fn runners(&self) -> Arc<dyn Runners> {
        match &self.engine {
            EngineAt::File(store) => store.runners(),
            EngineAt::Servers(_, redis) => Arc::new(RedisRunners::new(redis.clone())),
        }
    }

    /// Returns the projects.
    pub(crate) fn projects(&self) -> Arc<dyn Projects> {
        match &self.engine {
            EngineAt::File(store) => store.projects(),
            EngineAt::Servers(_, redis) => Arc::new(RedisProjects::new(redis.clone())),
        }
    }

    /// Returns what asks the repositories of projects.
    pub(crate) fn tip(&self) -> Tip {
        let settings = self.settings.projects.clone();
        Arc::new(move |source: Source| {
            let settings = settings.clone();
            let asking = async move {
                let tip = checkout::tip(&settings, &Supervisor::default(), &source).await;
                let commit = tip.map_err(|error| error.to_string())?;
                Ok(Wanted { clone_url: source.clone_url, commit })
            };
            asking.boxed()
        })
    }

    /// Returns what connects the ports with which runners work: those of a worker of the fleet, or of the state file,
    /// whose items go where those of `trawl crawl` go.
    pub(crate) fn for_runners(&self) -> ForRunners {
        let (settings, id) = (self.settings.clone(), WorkerId::of_this_machine());
        match &self.engine {
            EngineAt::File(store) => {
                let sinks = Sinks::new(id, default_sinks(&settings));
                let ports = WorkerPorts::from(store.ports(Arc::new(sinks)));
                Arc::new(move || ready(Ok(ports.clone())).boxed())
            }
            EngineAt::Servers(..) => Arc::new(move || {
                let (settings, id) = (settings.clone(), id.clone());
                async move { fleet::connect(&settings, &id).await.map(WorkerPorts::from) }.boxed()
            }),
        }
    }

    /// Returns the page history.
    pub(crate) fn pages(&self) -> Arc<dyn PageHistories> {
        match &self.engine {
            EngineAt::File(store) => store.pages(),
            EngineAt::Servers(_, redis) => Arc::new(RedisPages::new(redis.clone())),
        }
    }

    /// Returns the items that a fleet's workers have extracted; `None` for a state file, whose crawl writes
    /// items to files.
    pub(crate) fn items(&self) -> Result<Option<Arc<dyn Items>>, Fail> {
        let Settings { rabbitmq, items, queues, .. } = &self.settings;
        match &self.engine {
            EngineAt::File(_) => Ok(None),
            EngineAt::Servers(..) => Ok(Some(Arc::new(ItemStream::new(rabbitmq, items, queues.topology)?))),
        }
    }

    /// Returns an explainer of the states of URLs. `pages` comes from [`Backend::pages`].
    pub(crate) fn explainer<'a>(&'a self, pages: &'a dyn PageHistories) -> Explainer<'a> {
        let Self { stats, control, hosts, settings, .. } = self;
        Explainer {
            stats: &**stats,
            control: &**control,
            hosts: &**hosts,
            pages,
            settings,
            is_fleet: self.is_fleet(),
        }
    }

    /// Whether this is a fleet.
    pub(crate) fn is_fleet(&self) -> bool {
        matches!(self.engine, EngineAt::Servers(..))
    }

    /// Returns the stats of the crawl that a person names. A job's crawl may not have begun.
    pub(crate) async fn crawl(&self, arg: &CrawlArg) -> Result<CrawlStats, Fail> {
        match (arg.crawl_stats(&*self.stats).await?, arg) {
            (Some(stats), _) => Ok(stats),
            (None, CrawlArg::Latest) => Err(Fail::usage("there is no crawl yet")),
            (None, CrawlArg::Named(id)) => self.not_begun(id).await,
        }
    }

    /// Like [`Backend::crawl`], where a job that failed before its crawl began counts as a cancelled crawl.
    pub(crate) async fn crawl_or_failed_job(&self, arg: &CrawlArg) -> Result<CrawlStats, Fail> {
        if let CrawlArg::Named(id) = arg
            && let Some(job) = self.jobs.job(id).await?
            && job.status() == JobStatus::Failed
            && self.stats.crawl_stats(id).await?.is_none()
        {
            return Ok(job.stats_before_it_begins());
        }
        self.crawl(arg).await
    }

    /// Returns the stats of a crawl that must exist. A job's crawl may not have begun.
    pub(crate) async fn crawl_stats(&self, id: &CrawlId) -> Result<CrawlStats, Fail> {
        match self.stats.crawl_stats(id).await? {
            Some(stats) => Ok(stats),
            None => self.not_begun(id).await,
        }
    }

    /// Returns the stats of a job whose crawl has not begun, or never will.
    async fn not_begun(&self, id: &CrawlId) -> Result<CrawlStats, Fail> {
        let job = self.jobs.job(id).await?.ok_or_else(|| self.missing(id))?;
        match job.status() {
            JobStatus::Failed => Err(failed(&job)),
            _ => Ok(job.stats_before_it_begins()),
        }
    }

    /// Cancels a crawl, and its job if it has one. Returns whether the crawl had not begun.
    pub(crate) async fn cancel(&self, crawl: &CrawlRef) -> Result<bool, Fail> {
        Ok(cancel_crawl(crawl, &*self.jobs, &*self.control, &*self.stats).await?)
    }

    /// Returns where `trawl dlq` finds dead letters.
    pub(crate) fn dead_letters(&self) -> DeadLetters {
        self.place.state.as_deref().map_or(DeadLetters::Fleet, |file| DeadLetters::File(as_argument(file)))
    }

    fn missing(&self, id: &CrawlId) -> Fail {
        let state = self.place.state.as_deref().map(|file| format!(" --state {}", file.display()));
        Fail::usage(format!("no crawl {id}: `trawl status{}` lists them", state.unwrap_or_default()))
    }

    /// Prints the result of a command, unless `--quiet` is given.
    pub(crate) fn say(&self, what: impl Display) {
        self.global.say(what);
    }
}

/// Returns the error of a job that failed before its crawl began.
pub(crate) fn failed(job: &Job) -> Fail {
    Fail::run(format!("job {} has failed: {}", job.new.id, job.problem().map_or("", Problem::as_str)))
}

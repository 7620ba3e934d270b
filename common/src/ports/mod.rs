//! The ports, grouped by their callers. Most have two adapters, one on servers and one embedded, that pass one
//! conformance suite. A sink is written for each kind of destination; items are read again from the stream of RabbitMQ
//! alone, and the permanent history is on PostgreSQL alone. [`Requests`] is implemented by the worker, for the engine.
//! What a fleet's engine itself asks of its records and its broker is in `trawl-engine`; Redis and RabbitMQ are their
//! only adapters.
//!
//! | port | for |
//! |---|---|
//! | [`Engine`] | opening a crawl, replaying dead letters |
//! | [`Join`], [`SpiderTexts`], [`HoldCrawl`], [`LastVisits`] | a worker: the parts of larger ports that it uses |
//! | [`Frontier`] | a worker: claim, start, settle, release |
//! | [`CrawlSession`] | the producer: admit |
//! | [`Control`], [`HostControl`] | people's commands |
//! | [`Jobs`] | submitting crawls, and running them |
//! | [`SpiderStore`] | deploying spiders, and reading them for jobs |
//! | [`Runners`] | deciding what runners may do |
//! | [`Projects`], [`Grants`] | grouping spiders, and their secrets; what a worker is given of these |
//! | [`Schedules`] | submitting crawls by cron schedule |
//! | [`Stats`] | the stats that people see |
//! | [`Hosts`] | politeness: each host's schedule, its back-off, its robots.txt |
//! | [`Cache`], [`PageHistories`], [`Sink`], [`FileStore`] | responses, the page history, items, downloaded files |
//! | [`Sessions`] | cookies and log-ins of spiders |
//! | [`Logs`] | the problems of a fleet, for people |
//! | [`History`] | the permanent history of crawls, jobs and pages; on PostgreSQL alone |
//! | [`Items`] | reading stored items in a fleet: state files have none |

pub mod backoff;
mod cache;
mod control;
mod engine;
mod error;
mod files;
mod frontier;
pub mod health;
mod history;
mod hosts;
mod items;
mod jobs;
mod lanes;
mod logs;
mod pages;
mod projects;
mod runners;
mod schedules;
mod sessions;
mod sink;
mod spider_store;
mod stats;
mod urls;

use std::sync::Arc;

pub use cache::Cache;
pub use control::{Control, FailedPage, HoldCrawl};
pub use engine::{CrawlSession, Engine, Join, Joined, Joining, Opening, Requests, SourcesRead};
pub use error::{Error, ErrorKind, Fatal, Result, one_each};
pub use files::{FileContent, FileStore, Left, PartialFile, Resume};
pub use frontier::{
    Activity, BeatReply, Claimed, Completion, Disposition, Finish, Frontier, Heartbeat, OpenCrawl, PageVisit,
    Settled, Settlement,
};
pub use history::History;
pub use hosts::{
    BackoffRequest, Ended, HostBackoff, HostControl, HostSlotRequest, HostState, Hosts, InFlightRequest,
    RobotsEntry, SentLate,
};
pub use items::{ItemReader, Items, ItemsFrom, StoredItem};
pub use jobs::{JobCounts, JobFilter, JobPage, Jobs, Submitted};
pub use lanes::{LaneName, LaneState};
pub use logs::{LogLine, LogPart, LogPlace, Logs, NoLogPlace};
pub use pages::{LastVisits, PageHistories, Walk};
pub use projects::{
    Grants, MAX_PROJECT_SPIDERS, MAX_PROJECTS, MAX_REPORTS, Projects, owned_by_another, too_many_projects,
    too_many_spiders,
};
pub use runners::{Access, KeyDigest, MAX_RUNNERS, NoKeyDigest, Runner, RunnerKey, Runners};
pub use schedules::{ScheduleState, Schedules};
pub use sessions::{Revision, Sessions, StoredSession};
pub use sink::{Exchange, Page, Sink, SinkFactory};
pub use spider_store::{Deployed, MAX_VERSIONS, SpiderStore};
pub use stats::{
    Backlog, Browsers, Latency, PendingTask, Places, Seen, SeenUrls, SpiderTexts, Stats, TaskPage, Vanished,
    WorkerState,
};
pub use urls::{Claim, MAX_INVALID, NewWork, Terms};

/// One set of adapters, which all parts of the programs use.
#[derive(Clone)]
pub struct Ports {
    /// URLs and their workers.
    pub engine: Arc<dyn Engine>,
    /// Stats of crawls.
    pub stats: Arc<dyn Stats>,
    /// Politeness.
    pub hosts: Arc<dyn Hosts>,
    /// Responses.
    pub cache: Arc<dyn Cache>,
    /// The page history.
    pub pages: Arc<dyn PageHistories>,
    /// Cookies and log-ins of spiders.
    pub sessions: Arc<dyn Sessions>,
    /// Submitted crawls.
    pub jobs: Arc<dyn Jobs>,
    /// Deployed spiders.
    pub spider_store: Arc<dyn SpiderStore>,
    /// The state of cron schedules.
    pub schedules: Arc<dyn Schedules>,
    /// The secrets of projects.
    pub grants: Arc<dyn Grants>,
    /// Commands to crawls.
    pub control: Arc<dyn Control>,
    /// The destinations of items and files.
    pub sink_factory: Arc<dyn SinkFactory>,
    /// The log, for people.
    pub logs: Arc<dyn Logs>,
    /// The tasks that have ended lately.
    pub ended_tasks: Arc<dyn Logs>,
    /// The permanent history, if there is one.
    pub history: Option<Arc<dyn History>>,
}

/// The ports that a worker uses: [`Ports`] of an engine, or those of a relay to one.
#[derive(Clone)]
pub struct WorkerPorts {
    /// URLs and tasks.
    pub engine: Arc<dyn Join>,
    /// The files of spiders that crawls keep.
    pub texts: Arc<dyn SpiderTexts>,
    /// Politeness.
    pub hosts: Arc<dyn Hosts>,
    /// Responses.
    pub cache: Arc<dyn Cache>,
    /// The page history.
    pub pages: Arc<dyn LastVisits>,
    /// Cookies and log-ins of spiders.
    pub sessions: Arc<dyn Sessions>,
    /// Pauses of crawls that cannot log in.
    pub control: Arc<dyn HoldCrawl>,
    /// The secrets of projects.
    pub grants: Arc<dyn Grants>,
    /// The destinations of items and files.
    pub sink_factory: Arc<dyn SinkFactory>,
    /// The log, for people.
    pub logs: Arc<dyn Logs>,
    /// The tasks that have ended lately.
    pub ended_tasks: Arc<dyn Logs>,
    /// The permanent history, if there is one.
    pub history: Option<Arc<dyn History>>,
}

impl From<Ports> for WorkerPorts {
    fn from(ports: Ports) -> Self {
        let Ports { engine, stats, hosts, cache, pages, sessions, control, .. } = ports;
        let Ports { grants, sink_factory, logs, ended_tasks, history, .. } = ports;
        Self {
            engine,
            texts: stats,
            hosts,
            cache,
            pages,
            sessions,
            control,
            grants,
            sink_factory,
            logs,
            ended_tasks,
            history,
        }
    }
}

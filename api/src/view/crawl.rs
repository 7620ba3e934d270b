//! Crawls, their jobs, and what they have of hosts and tasks.

use std::collections::BTreeMap;

use serde::Serialize;
use trawl_common::explain::notes;
use trawl_common::frontier::crawl::{Counts, CrawlState, HostStats};
use trawl_common::jobs::{self, Problem};
use trawl_common::spider::Version;
use trawl_common::spider::arguments::{ArgumentName, ArgumentValue};
use utoipa::ToSchema;

use super::known::Known;
use super::{JobStatus, Status, Time};

/// The number of URLs by outcome
#[derive(Serialize, ToSchema)]
struct Counters {
    /// URLs that were new and taken in
    admitted: u64,
    /// URLs that were fetched and stored
    done: u64,
    /// URLs that failed for good
    failed: u64,
    /// URLs that were left out on purpose
    skipped: u64,
    /// URLs that outlived their deadline
    expired: u64,
    /// URLs that were dropped with the crawl
    cancelled: u64,
}

impl From<Counts> for Counters {
    fn from(counts: Counts) -> Self {
        let Counts { admitted, done, failed, skipped, expired, cancelled } = counts;
        Self { admitted, done, failed, skipped, expired, cancelled }
    }
}

/// A crawl and its counters
#[derive(Serialize, ToSchema)]
pub(crate) struct Crawl {
    /// Its id
    crawl: String,
    spider: String,
    #[schema(value_type = Status)]
    status: CrawlState,
    /// Whether sources of it were not read to their end: whoever read them died, was stopped, or met an error
    incomplete: bool,
    /// Whether it has finished and nothing came of it: no page was fetched, and no task done
    empty: bool,
    /// Whether it has finished and found nothing new: all that its sources name was seen before, as its `dedup` says,
    /// which someone has chosen. Such a crawl is not empty
    nothing_new: bool,
    /// Whether it runs, has URLs left, and none has ended for `events.stalled_after`
    stalled: bool,
    /// Which URLs it takes for seen: those of all crawls of its spider (`spider`), its own (`crawl`), or also those
    /// that were fetched less than an age ago, as `12h`
    dedup: String,
    /// Whether nothing more will come of it: every URL has its final state, nobody reads its sources, and the work that
    /// it handed to other spiders is done
    over: bool,
    /// URLs and tasks that are pending in the crawls of other spiders to which it handed work; 0 while it has pending
    /// ones itself
    handed_pending: u64,
    #[serde(flatten)]
    counters: Counters,
    /// URLs that have no final state yet
    pending: u64,
    /// Bytes of the bodies of all that was done
    bytes: u64,
    /// Items that its pages and tasks gave
    items: u64,
    /// How many of each kind; those of a spider without kinds have an empty name
    item_kinds: BTreeMap<String, u64>,
    /// In a crawl that fetches pages again, how many are `new`, `changed`, `unchanged` and `gone`; also those of pages
    /// whose servers said that they had not changed, which are not among `items`
    item_changes: BTreeMap<String, u64>,
    /// The number of URLs by the reason why they ended, as `failed:http`
    reasons: BTreeMap<String, u64>,
    /// Links that limits left out
    left_out: u64,
    /// Whether every source has been read to its end
    discovered: bool,
    /// When it started; before that, when it was submitted
    started: Time,
    /// From its start to its end, or to now
    seconds: f64,
    /// The reasons why its URLs are waiting, one sentence each; only in the response for a single crawl
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false, required = false)]
    waits: Vec<String>,
    /// The problems of the crawl, one sentence each, such as that it is incomplete, or why it is empty
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false, required = false)]
    notes: Vec<String>,
    /// The job of the crawl; absent if it has none
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    job: Option<Job>,
}

/// A submitted crawl. If it fails, its crawl is cancelled
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Job {
    #[schema(value_type = JobStatus)]
    status: jobs::JobStatus,
    /// Jobs with the highest priority are started first
    priority: f64,
    /// Whose it is
    project: String,
    /// The version of the project, if it is not the latest
    version: Option<String>,
    /// The spider's arguments
    arguments: BTreeMap<String, String>,
    /// When it was asked for
    asked: Time,
    /// When a worker took it
    started: Option<Time>,
    ended: Option<Time>,
    /// The worker that took it last
    worker: Option<String>,
    /// Why it failed, or which of its sources could not be read
    problem: Option<String>,
}

impl From<&jobs::Job> for Job {
    fn from(job: &jobs::Job) -> Self {
        let run = job.run();
        let argument = |(name, value): (&ArgumentName, &ArgumentValue)| (name.to_string(), value.to_string());
        Self {
            status: job.status(),
            priority: job.new.priority.get(),
            project: job.new.project.to_string(),
            version: job.new.version.as_ref().map(Version::to_string),
            arguments: job.new.arguments.iter().map(argument).collect(),
            asked: job.asked.into(),
            started: run.map(|run| run.started.into()),
            ended: job.ended().map(Time::from),
            worker: run.map(|run| run.runner.to_string()),
            problem: job.problem().map(Problem::to_string),
        }
    }
}

impl From<Known> for Crawl {
    fn from(known: Known) -> Self {
        let over = known.is_over();
        let Known { stats, job, handed_pending, .. } = known;
        Self {
            over,
            handed_pending,
            job,
            notes: notes(&stats),
            incomplete: stats.incomplete,
            empty: stats.empty,
            nothing_new: stats.nothing_new,
            stalled: stats.stalled,
            items: stats.items,
            item_kinds: stats.item_kinds,
            item_changes: stats.item_changes,
            dedup: stats.dedup.to_string(),
            waits: Vec::new(),
            crawl: stats.crawl.to_string(),
            spider: stats.spider.to_string(),
            status: stats.status,
            counters: stats.counts.into(),
            pending: stats.pending,
            bytes: stats.bytes,
            reasons: stats.reasons,
            left_out: stats.left_out,
            discovered: stats.discovered,
            started: stats.started.into(),
            seconds: stats.seconds,
        }
    }
}

impl Crawl {
    /// Adds the reasons why the crawl's URLs are waiting.
    pub(crate) fn waiting(self, waits: Vec<String>) -> Self {
        Self { waits, ..self }
    }
}

/// The counts of one host in a crawl
#[derive(Serialize, ToSchema)]
pub(crate) struct CrawlHost {
    /// The host, with its port if that is not the usual one
    host: String,
    #[serde(flatten)]
    counters: Counters,
    /// URLs that have no final state yet
    pending: u64,
    bytes: u64,
}

/// The counts of a crawl's tasks
#[derive(Serialize, ToSchema)]
pub(crate) struct CrawlTasks {
    #[serde(flatten)]
    counters: Counters,
    /// Tasks that have no final state yet
    pending: u64,
}

impl From<Counts> for CrawlTasks {
    fn from(counts: Counts) -> Self {
        Self { pending: counts.admitted.saturating_sub(counts.ended()), counters: counts.into() }
    }
}

impl From<HostStats> for CrawlHost {
    fn from(stats: HostStats) -> Self {
        let pending = stats.pending();
        Self { host: stats.host, counters: stats.counts.into(), pending, bytes: stats.bytes }
    }
}

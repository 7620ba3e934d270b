//! Crawls, hosts and workers as callers see them. The names are those that `trawl ... --json` prints.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use strum::VariantNames;
use trawl_common::dead_letters::Failed;
use trawl_common::explain;
use trawl_common::frontier::crawl::{Counts, CrawlState, HostStats};
use trawl_common::frontier::dead_letter::Note;
use trawl_common::frontier::{Work, outcome};
use trawl_common::jobs::{self, Problem};
use trawl_common::logs;
use trawl_common::ports::{self, HostBackoff, HostState, LaneState, WorkerState};
use trawl_common::request::RequestView;
use trawl_common::spider::Version;
use trawl_common::spider::arguments::{ArgumentName, ArgumentValue};
use trawl_common::spider::item;
use trawl_common::time::UnixMs;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::known::Known;

/// An instant, by RFC 3339
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(value_type = String, format = DateTime, examples("2026-01-31T12:00:00.000Z"))]
pub(crate) struct Time(String);

impl From<UnixMs> for Time {
    fn from(time: UnixMs) -> Self {
        Self(time.to_string())
    }
}

/// The schema of an enum of `trawl-common`: its words, from its own list.
macro_rules! words {
    ($(#[doc = $doc:literal] $name:ident of $of:ty;)*) => {$(
        #[doc = $doc]
        pub(crate) enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let words = <$of as VariantNames>::VARIANTS.iter().copied();
                ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).description(Some($doc.trim())).into()
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                stringify!($name).into()
            }
        }
    )*};
}

words! {
    /// Where a crawl stands
    Status of CrawlState;
    /// Where a job stands
    JobStatus of jobs::JobStatus;
    /// What robots.txt says of a URL, as the settings speak for all spiders
    RobotsVerdict of explain::RobotsVerdict;
    /// Why a URL reached no good end
    Reason of outcome::Reason;
    /// Where messages wait: for a worker (`due`, `priority`, `bulk`, `expired`), for their time (`wait`), or to be read (`failed`)
    LaneName of ports::LaneName;
    /// How grave an entry of the log is, the gravest first
    LogLevel of logs::LogLevel;
    /// What had become of a page's content when it was fetched last
    Change of item::Change;
}

/// How many URLs ended how
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
    /// Whether nothing more will come of it: every URL has its final state, and nobody reads its sources
    over: bool,
    #[serde(flatten)]
    counters: Counters,
    /// URLs that have no final state yet
    pending: u64,
    /// Bytes of the bodies of all that was done
    bytes: u64,
    /// How many URLs ended why, as `failed:http`
    reasons: BTreeMap<String, u64>,
    /// Links that limits left out
    left_out: u64,
    /// Whether every source has been read to its end
    discovered: bool,
    /// When it began; before that, when it was asked for
    started: Time,
    /// From its start to its end, or to now
    seconds: f64,
    /// What keeps its URLs waiting, each in a sentence; only of one crawl that is asked for
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false, required = false)]
    waits: Vec<String>,
    /// The job that it is of; absent if it is of none
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    job: Option<Job>,
}

/// A crawl that was asked for. One that fails leaves its crawl cancelled
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Job {
    #[schema(value_type = JobStatus)]
    status: jobs::JobStatus,
    /// The highest is begun first
    priority: f64,
    /// Whose it is
    project: String,
    /// Which version of the project, if it is not the latest
    version: Option<String>,
    /// The spider's arguments
    arguments: BTreeMap<String, String>,
    /// When it was asked for
    asked: Time,
    /// When a worker took it
    started: Option<Time>,
    ended: Option<Time>,
    /// Which worker took it last
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
        let Known { stats, job, .. } = known;
        Self {
            over,
            job,
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
    /// The same, with what keeps its URLs waiting.
    pub(crate) fn waiting(self, waits: Vec<String>) -> Self {
        Self { waits, ..self }
    }
}

/// What a crawl has of one host
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

/// What a crawl has of tasks
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

/// A worker that lives
#[derive(Serialize, ToSchema)]
pub(crate) struct Worker {
    worker: String,
    version: String,
    /// Whether it was asked to end
    draining: bool,
    /// URLs in its hands
    in_flight: u64,
    pages_per_second: f64,
    /// How long its requests took lately; absent if it made none
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    latency: Option<Latency>,
    /// `ok`, or what keeps it from working
    health: String,
    /// The tasks that its programs were doing at its last heartbeat, by their keys, and since when; 200 at most
    running: BTreeMap<String, Time>,
}

impl From<WorkerState> for Worker {
    fn from(state: WorkerState) -> Self {
        let WorkerState {
            worker,
            version,
            draining,
            in_flight,
            pages_per_second,
            latency,
            health,
            running,
            ..
        } = state;
        let running = running.into_iter().map(|(task, since)| (task, since.into())).collect();
        let latency = latency.map(|ports::Latency { p50_ms, p95_ms }| Latency { p50_ms, p95_ms });
        Self {
            worker: worker.to_string(),
            version,
            draining,
            in_flight,
            pages_per_second,
            latency,
            health,
            running,
        }
    }
}

/// How long requests to hosts took, bodies included, in milliseconds
#[derive(Serialize, ToSchema)]
struct Latency {
    /// Half of them took no longer
    p50_ms: u64,
    /// Nineteen of twenty took no longer
    p95_ms: u64,
}

/// What waits in a lane
#[derive(Serialize, ToSchema)]
pub(crate) struct Lane {
    #[schema(value_type = LaneName)]
    lane: ports::LaneName,
    /// How many messages wait; what workers hold is not among them
    messages: u64,
    /// How many connections take messages from it; nothing where that says nothing
    consumers: Option<u64>,
    /// For how many seconds the next message has waited, at most; nothing if none waits, or if it is not known
    oldest_seconds: Option<f64>,
}

impl From<LaneState> for Lane {
    fn from(LaneState { lane, messages, consumers, oldest }: LaneState) -> Self {
        Self { lane, messages, consumers, oldest_seconds: oldest.map(|oldest| oldest.as_secs_f64()) }
    }
}

/// A host, or a group of hosts that share a rate, and how it is asked
#[derive(Serialize, ToSchema)]
pub(crate) struct Host {
    host: String,
    /// Milliseconds between two requests; 0 for no limit
    interval_ms: Option<f64>,
    /// The next free slot
    next: Time,
    /// The end of its waitlist
    line: Time,
    /// Requests under way, where their number is limited
    under_way: u64,
    /// Requests that were let go since this minute of the clock began: of workers, of producers, and of programs through the proxy
    requests_this_minute: u64,
    /// How long a request took lately
    latency_ms: Option<u64>,
    backoff: Option<Backoff>,
    /// Since when nobody may ask it
    blocked: Option<Time>,
}

/// Why and until when a host is left alone
#[derive(Serialize, ToSchema)]
pub(crate) struct Backoff {
    since: Time,
    until: Time,
    /// The HTTP status that it answered; 0 for a redirect that its spider takes for a ban
    status: u16,
    /// How many times in a row it did without saying for how long
    strikes: u32,
}

impl From<HostState> for Host {
    fn from(state: HostState) -> Self {
        let backoff = |HostBackoff { since, until, status, strikes }| Backoff {
            since: since.into(),
            until: until.into(),
            status,
            strikes,
        };
        Self {
            host: state.key.to_string(),
            interval_ms: state.interval.map(|interval| interval.as_secs_f64() * 1000.0),
            next: state.next.into(),
            line: state.line.into(),
            under_way: state.under_way,
            requests_this_minute: state.requests,
            latency_ms: state.latency.map(|latency| latency.as_millis() as u64),
            backoff: state.backoff.map(backoff),
            blocked: state.blocked.map(Time::from),
        }
    }
}

/// A URL that failed, or a text that is none
#[derive(Serialize, ToSchema)]
pub(crate) struct DeadLetter {
    url: String,
    crawl: String,
    spider: String,
    #[schema(value_type = Reason)]
    reason: outcome::Reason,
    /// The kind of the last failure
    class: Option<String>,
    /// The last HTTP status
    status: Option<u16>,
    /// The last error
    error: String,
    /// How often it was tried
    attempts: u32,
    /// Who gave up on it
    worker: Option<String>,
    failed_at: Time,
    /// The lane that it came through
    lane: String,
    /// Links away from where the crawl started
    depth: u16,
    /// The page that linked to it
    referrer: Option<String>,
    /// How it asks, if it is a request. It is here where one URL was asked for, not in lists
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    request: Option<Request>,
}

impl DeadLetter {
    /// The same with how it asks.
    pub(crate) fn asking(self, work: Option<&Work>) -> Self {
        let request = work.and_then(Work::request).map(|request| RequestView::from(&request.new).into());
        Self { request, ..self }
    }
}

/// How a request asks: of header fields and cookies the names, for their values may be secrets, and of the body how long it is
#[derive(Serialize, ToSchema)]
pub(crate) struct Request {
    method: String,
    /// In lower case
    headers: Vec<String>,
    cookies: Vec<String>,
    body_bytes: usize,
    /// What the spider's program is given with the page: any JSON
    data: Option<serde_json::Value>,
    /// Whether whatever response comes is its page; left out where it is not
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    any_status: bool,
    /// Which failures the program is given in place of a page, `last` or `each`; left out where there are none
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failures: Option<String>,
    /// Above 0 it is urgent
    priority: f64,
    /// How often it is tried again, if it says so itself
    retries: Option<u32>,
}

impl From<RequestView> for Request {
    fn from(view: RequestView) -> Self {
        let RequestView {
            method,
            headers,
            cookies,
            body_bytes,
            data,
            any_status,
            failures,
            priority,
            retries,
        } = view;
        let (method, priority) = (method.to_string(), priority.get());
        let failures = failures.map(|failures| failures.to_string());
        Self { method, headers, cookies, body_bytes, data, any_status, failures, priority, retries }
    }
}

impl From<Failed> for DeadLetter {
    fn from(Failed { crawl, url, note }: Failed) -> Self {
        let Note { cause, lane, depth, referrer } = note;
        Self {
            url,
            crawl: crawl.id.to_string(),
            spider: crawl.spider.to_string(),
            reason: cause.reason,
            class: cause.class.map(|class| class.to_string()),
            status: cause.status,
            error: cause.error,
            attempts: cause.attempts,
            worker: cause.worker.map(|worker| worker.to_string()),
            failed_at: cause.failed_at.into(),
            lane: lane.to_string(),
            depth,
            referrer: referrer.map(|referrer| referrer.to_string()),
            request: None,
        }
    }
}

/// An entry of the fleet's log
#[derive(Serialize, ToSchema)]
pub(crate) struct LogEntry {
    /// When it happened
    time: Time,
    #[schema(value_type = LogLevel)]
    level: logs::LogLevel,
    /// Who says so
    worker: String,
    /// Of which spider it is; absent if of none
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    spider: Option<String>,
    /// In which crawl it happened; absent if in none
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    crawl: Option<String>,
    /// With which host; absent if with none
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    host: Option<String>,
    /// The URL or the task that it is about; absent if about none
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    key: Option<String>,
    /// The kind of a failure; absent if nothing failed
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    class: Option<String>,
    /// What happened: one line or many, at most 64 KiB
    message: String,
}

impl From<logs::LogEntry> for LogEntry {
    fn from(entry: logs::LogEntry) -> Self {
        let logs::LogEntry { time, level, worker, spider, crawl, host, key, class, message } = entry;
        Self {
            time: time.into(),
            level,
            worker: worker.to_string(),
            spider: spider.map(|spider| spider.to_string()),
            crawl: crawl.map(|crawl| crawl.to_string()),
            host,
            key,
            class,
            message: message.as_str().to_owned(),
        }
    }
}

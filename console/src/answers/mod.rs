//! Responses of the API, as far as the pages show them.

mod logs;
mod projects;
mod schedules;
mod spiders;
mod tasks;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::jobs::JobStatus;
use trawl_common::time::UnixMs;

pub(crate) use self::logs::{LogEntry, Logs};
pub(crate) use self::projects::{MadeProject, MadeProjects, Runner, Runners};
pub(crate) use self::schedules::{Scheduled, Schedules};
pub(crate) use self::spiders::{
    Added, Argument, Checked, Mistake, Removed, Spider, SpiderText, Spiders, Trial, Version, Versions,
};
pub(crate) use self::tasks::{
    CancelledTasks, EndedTask, EndedTasks, MAX_LISTED_RECIPE, SubmittedTasks, Task, Tasks,
};
use crate::shown::{Bytes, Number, Rate, Seconds, Text, Time};

/// A page of crawls.
#[derive(Deserialize)]
pub(crate) struct Crawls {
    pub(crate) crawls: Vec<Crawl>,
    pub(crate) next: Option<String>,
}

/// A crawl.
#[derive(Deserialize)]
pub(crate) struct Crawl {
    pub(crate) crawl: String,
    pub(crate) spider: String,
    pub(crate) status: CrawlState,
    pub(crate) incomplete: bool,
    pub(crate) empty: bool,
    pub(crate) nothing_new: bool,
    pub(crate) stalled: bool,
    /// Whether nothing more will happen to it.
    pub(crate) over: bool,
    pub(crate) dedup: String,
    pub(crate) admitted: Number,
    pub(crate) done: Number,
    pub(crate) failed: Number,
    pub(crate) skipped: Number,
    pub(crate) expired: Number,
    pub(crate) cancelled: Number,
    pub(crate) pending: Number,
    pub(crate) handed_pending: Number,
    pub(crate) bytes: Bytes,
    pub(crate) items: Number,
    pub(crate) item_kinds: BTreeMap<String, Number>,
    pub(crate) item_changes: BTreeMap<String, Number>,
    pub(crate) reasons: BTreeMap<String, Number>,
    pub(crate) discovered: bool,
    pub(crate) started: Time,
    pub(crate) seconds: Seconds,
    pub(crate) job: Option<Job>,
    /// The problems of the crawl.
    #[serde(default)]
    pub(crate) notes: Vec<Text>,
    /// The reasons why it is waiting; only in the response for a single crawl.
    #[serde(default)]
    pub(crate) waits: Vec<Text>,
}

/// A part of a crawl's bar, as a percentage of its length.
pub(crate) struct Part {
    pub(crate) kind: &'static str,
    pub(crate) from: f64,
    pub(crate) width: f64,
}

impl Crawl {
    /// Its status, or its main problem.
    pub(crate) fn status(&self) -> &'static str {
        self.status.word(self.incomplete, self.empty, self.nothing_new, self.stalled)
    }

    /// The CSS class of its status: a crawl that has ended is well only if nothing is amiss with it.
    pub(crate) fn style(&self) -> &'static str {
        match self.status() {
            "finished" if self.failed.0 > self.done.0 => "bad",
            "finished" if !self.notes.is_empty() => "warn",
            "stalled" => "bad",
            "incomplete" | "empty" => "warn",
            "nothing new" => "ok",
            status => status,
        }
    }

    /// The time of its end; `None` while it goes on.
    pub(crate) fn ended_at(&self) -> Option<UnixMs> {
        let took = Duration::try_from_secs_f64(self.seconds.0).unwrap_or_default();
        self.over.then(|| Some(self.started.instant()?.plus(took))).flatten()
    }

    pub(crate) fn may_pause(&self) -> bool {
        self.status == CrawlState::Running
    }

    pub(crate) fn may_resume(&self) -> bool {
        self.status == CrawlState::Paused
    }

    pub(crate) fn may_cancel(&self) -> bool {
        !self.status.is_over()
    }

    /// The number of URLs that reached a final state other than done or failed.
    pub(crate) fn left(&self) -> u64 {
        self.skipped.0 + self.expired.0 + self.cancelled.0
    }

    /// The number of URLs that have reached a final state.
    pub(crate) fn ended(&self) -> Number {
        Number(self.done.0 + self.failed.0 + self.left())
    }

    /// The percentage of known URLs that have ended.
    pub(crate) fn percent(&self) -> u64 {
        // Not rounded up: 100 is the end.
        (self.ended().0 * 100).checked_div(self.admitted.0).unwrap_or_default().min(100)
    }

    /// The parts of its bar: done, failed, and left out.
    pub(crate) fn bar(&self) -> Vec<Part> {
        let all = self.admitted.0.max(self.ended().0).max(1) as f64;
        let mut from = 0.0;
        let kinds = [("done", self.done.0), ("failed", self.failed.0), ("left", self.left())];
        let part = |(kind, number): (_, u64)| {
            let width = number as f64 / all * 100.0;
            let part = Part { kind, from, width };
            from += width;
            part
        };
        kinds.into_iter().map(part).filter(|part| part.width > 0.0).collect()
    }

    /// The number of pages per second, from its start to its end, or to now.
    pub(crate) fn pages_per_second(&self) -> Rate {
        let handled = self.ended().0 - self.cancelled.0;
        Rate(if self.seconds.0 > 0.0 { handled as f64 / self.seconds.0 } else { 0.0 })
    }

    /// The final states of URLs other than done, most frequent first: the state, the reason, and the number.
    pub(crate) fn why<'a>(&'a self) -> Vec<(&'a str, &'a str, Number)> {
        let split = |reason: &'a String| reason.split_once(':').unwrap_or((reason, ""));
        let named = self.reasons.iter().map(|(reason, number)| (split(reason), *number));
        let mut found: Vec<_> = named.map(|((what, why), number)| (what, why, number)).collect();
        found.sort_by_key(|(.., number)| std::cmp::Reverse(*number));
        found
    }
}

/// The job of a crawl.
#[derive(Deserialize)]
pub(crate) struct Job {
    pub(crate) status: JobStatus,
    pub(crate) priority: f64,
    pub(crate) project: String,
    pub(crate) version: Option<String>,
    pub(crate) arguments: BTreeMap<String, Text>,
    pub(crate) asked: Time,
    pub(crate) ended: Option<Time>,
    pub(crate) worker: Option<String>,
    pub(crate) problem: Option<Text>,
}

/// The hosts of a crawl.
#[derive(Deserialize)]
pub(crate) struct CrawlHosts {
    pub(crate) hosts: Vec<CrawlHost>,
    /// `None` if the crawl has more hosts than these.
    pub(crate) tasks: Option<CrawlTasks>,
}

/// The counts of one host in a crawl.
#[derive(Deserialize)]
pub(crate) struct CrawlHost {
    pub(crate) host: Text,
    pub(crate) admitted: Number,
    pub(crate) done: Number,
    pub(crate) failed: Number,
    pub(crate) pending: Number,
    pub(crate) bytes: Bytes,
}

/// The counts of a crawl's tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct CrawlTasks {
    pub(crate) admitted: Number,
    pub(crate) done: Number,
    pub(crate) failed: Number,
    pub(crate) pending: Number,
}

/// The running workers.
#[derive(Deserialize)]
pub(crate) struct Workers {
    pub(crate) workers: Vec<Worker>,
}

/// A worker.
#[derive(Deserialize)]
pub(crate) struct Worker {
    pub(crate) worker: String,
    pub(crate) version: String,
    pub(crate) draining: bool,
    pub(crate) in_flight: Number,
    pub(crate) pages_per_second: Rate,
    pub(crate) latency: Option<Latency>,
    pub(crate) health: Text,
    /// The spiders that it cannot work for, and why.
    #[serde(default)]
    pub(crate) lacks: BTreeMap<String, Text>,
    /// The spiders that it has only the old files of, and why.
    #[serde(default)]
    pub(crate) outdated: BTreeMap<String, Text>,
    /// The tasks that its programs process, each with its start.
    pub(crate) running: BTreeMap<String, Time>,
    /// The versions of the programs that it uses, by spider.
    pub(crate) programs: BTreeMap<String, String>,
    pub(crate) browsers: Option<Browsers>,
}

/// The browsers of a worker.
#[derive(Clone, Copy, Deserialize)]
pub(crate) struct Browsers {
    pub(crate) running: Number,
    pub(crate) pages: Number,
    pub(crate) waiting: Number,
    pub(crate) memory: Bytes,
    pub(crate) cpu_seconds: Number,
    pub(crate) rendered: Number,
    pub(crate) died: Number,
}

impl Worker {
    pub(crate) fn is_well(&self) -> bool {
        self.health.as_str() == "ok"
    }
}

/// The duration of recent requests in milliseconds: median and 95th percentile.
#[derive(Deserialize)]
pub(crate) struct Latency {
    pub(crate) p50_ms: Number,
    pub(crate) p95_ms: Number,
}

/// All lanes.
#[derive(Deserialize)]
pub(crate) struct Lanes {
    pub(crate) lanes: Vec<Lane>,
}

/// The content of a lane.
#[derive(Deserialize)]
pub(crate) struct Lane {
    lane: String,
    pub(crate) messages: Number,
    pub(crate) consumers: Option<Number>,
    pub(crate) oldest_seconds: Option<Seconds>,
}

impl Lane {
    /// The display name of the lane.
    pub(crate) fn name(&self) -> &str {
        match self.lane.as_str() {
            "due" => "parked, and due again",
            "wait" => "parked",
            "failed" => "dead letters for other programs",
            lane => lane,
        }
    }
}

/// A page of hosts.
#[derive(Deserialize)]
pub(crate) struct Hosts {
    pub(crate) hosts: Vec<Host>,
    pub(crate) next: Option<String>,
}

/// A host, or a group of hosts that share a rate.
#[derive(Deserialize)]
pub(crate) struct Host {
    pub(crate) host: String,
    interval_ms: Option<f64>,
    line: Time,
    pub(crate) under_way: Number,
    pub(crate) requests_this_minute: Number,
    pub(crate) latency_ms: Option<Number>,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) blocked: Option<Time>,
}

impl Host {
    /// The slot of the last URL in its waitlist; `None` if it was never requested.
    pub(crate) fn turn(&self) -> Option<&Time> {
        (!self.line.0.starts_with("1970-")).then_some(&self.line)
    }

    /// The request rate, for display.
    pub(crate) fn pace(&self) -> String {
        match self.interval_ms {
            None => "\u{2013}".to_owned(),
            Some(0.0) => "no limit".to_owned(),
            Some(interval) if interval > 1000.0 => format!("every {}", Seconds(interval / 1000.0)),
            Some(interval) => format!("{} a second", Rate(1000.0 / interval)),
        }
    }
}

/// The reason for a host's back-off, and its end.
#[derive(Deserialize)]
pub(crate) struct Backoff {
    pub(crate) until: Time,
    pub(crate) status: u16,
}

/// A page of dead letters.
#[derive(Deserialize)]
pub(crate) struct DeadLetters {
    pub(crate) dead_letters: Vec<DeadLetter>,
    pub(crate) next: Option<String>,
}

/// A URL that failed, or a text that is not a URL.
#[derive(Deserialize)]
pub(crate) struct DeadLetter {
    pub(crate) url: Text,
    pub(crate) crawl: String,
    pub(crate) spider: String,
    pub(crate) reason: String,
    pub(crate) class: Option<String>,
    pub(crate) status: Option<u16>,
    pub(crate) error: Text,
    pub(crate) attempts: Number,
    pub(crate) worker: Option<String>,
    pub(crate) failed_at: Time,
    pub(crate) lane: String,
    pub(crate) depth: u16,
    pub(crate) referrer: Option<Text>,
    pub(crate) request: Option<Request>,
}

/// A request as it is sent.
#[derive(Deserialize)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) headers: Vec<Text>,
    pub(crate) cookies: Vec<Text>,
    pub(crate) body_bytes: Number,
    pub(crate) data: Option<Value>,
}

/// The number of dead letters that match.
#[derive(Deserialize)]
pub(crate) struct Counted {
    pub(crate) count: u64,
    /// Whether there may be more.
    pub(crate) more: bool,
}

/// The result of replaying or purging dead letters.
#[derive(Deserialize)]
pub(crate) struct Changed {
    /// The number of dead letters.
    #[serde(alias = "sent", alias = "purged")]
    pub(crate) number: u64,
    /// The crawls of the URLs that were sent again.
    #[serde(default)]
    pub(crate) crawls: Vec<String>,
    pub(crate) next: Option<String>,
}

/// The state of a URL in a crawl.
#[derive(Deserialize)]
pub(crate) struct Url {
    pub(crate) url: Text,
    pub(crate) state: String,
    pub(crate) until: Option<Time>,
    pub(crate) worker: Option<String>,
    pub(crate) started: Option<bool>,
    pub(crate) attempts: Option<Number>,
    pub(crate) lane: Option<String>,
    pub(crate) deadline: Option<Time>,
    pub(crate) dead_letter: Option<DeadLetter>,
    pub(crate) page: Option<PageHistory>,
    pub(crate) request: Option<Request>,
    /// Its state, the reason, and the next step.
    pub(crate) words: Vec<Text>,
}

/// The history of a page, as remembered for a spider.
#[derive(Deserialize)]
pub(crate) struct PageHistory {
    pub(crate) fetched_at: Time,
    pub(crate) change: String,
    pub(crate) depth: u16,
}

/// A page of items.
#[derive(Deserialize)]
pub(crate) struct Items {
    pub(crate) items: Vec<serde_json::Value>,
    pub(crate) next: Option<String>,
}

//! The history in PostgreSQL: a row for each crawl, job and page, by their ids, and for each entry of the log.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::history::PageEnd;
use trawl_common::jobs::Job;
use trawl_common::logs::LogEntry;
use trawl_common::ports::{self, Result};
use trawl_common::settings::ServerUrl;
use trawl_common::time::UnixMs;
use trawl_common::web::url::Fingerprint;

use crate::sinks::postgres::cell::Type;
use crate::sinks::postgres::link::{Link, Server};
use crate::sinks::postgres::relation::Relation;

/// Maximum number of rows in one statement.
const MAX_ROWS: usize = 500;

/// The table of pages. The id of a page is a hash of its crawl and its URL, which is too long for an index.
const PAGES: Relation<'_> = Relation {
    name: Cow::Borrowed("trawl_pages"),
    latest_by: "ended",
    columns: Cow::Borrowed(&[
        ("id", Type::Text),
        ("crawl", Type::Text),
        ("spider", Type::Text),
        ("url", Type::Text),
        ("outcome", Type::Text),
        ("reason", Type::Text),
        ("status", Type::Integer),
        ("attempts", Type::Integer),
        ("ended", Type::Time),
        ("worker", Type::Text),
        ("items", Type::Integer),
        ("bytes", Type::Integer),
    ]),
    content: None,
};

const CRAWLS: Relation<'_> = Relation {
    name: Cow::Borrowed("trawl_crawls"),
    latest_by: "noted",
    columns: Cow::Borrowed(&[
        ("id", Type::Text),
        ("spider", Type::Text),
        ("status", Type::Text),
        ("started", Type::Time),
        ("ended", Type::Time),
        ("noted", Type::Time),
        ("admitted", Type::Integer),
        ("done", Type::Integer),
        ("failed", Type::Integer),
        ("skipped", Type::Integer),
        ("expired", Type::Integer),
        ("cancelled", Type::Integer),
        ("pending", Type::Integer),
        ("bytes", Type::Integer),
        ("reasons", Type::Json),
    ]),
    content: None,
};

const JOBS: Relation<'_> = Relation {
    name: Cow::Borrowed("trawl_jobs"),
    latest_by: "noted",
    columns: Cow::Borrowed(&[
        ("id", Type::Text),
        ("project", Type::Text),
        ("spider", Type::Text),
        ("version", Type::Text),
        ("arguments", Type::Json),
        ("status", Type::Text),
        ("problem", Type::Text),
        ("asked", Type::Time),
        ("started", Type::Time),
        ("ended", Type::Time),
        ("noted", Type::Time),
        ("runner", Type::Text),
    ]),
    content: None,
};

const LOGS: Relation<'_> = Relation {
    name: Cow::Borrowed("trawl_logs"),
    latest_by: "time",
    columns: Cow::Borrowed(&[
        ("id", Type::Text),
        ("time", Type::Time),
        ("level", Type::Text),
        ("worker", Type::Text),
        ("spider", Type::Text),
        ("crawl", Type::Text),
        ("host", Type::Text),
        ("key", Type::Text),
        ("class", Type::Text),
        ("message", Type::Text),
    ]),
    content: None,
};

/// A database. It is connected to when there is something to store, and again after the connection broke.
pub struct PostgresHistory {
    name: String,
    server: Server,
    link: Mutex<Option<Link>>,
}

impl PostgresHistory {
    /// Creates the history at `url`. Fails with `Refused` if that is invalid.
    pub fn new(url: &ServerUrl) -> Result<Self> {
        let name = format!("history in postgres {url}");
        Ok(Self { name, server: Server::new(url, None)?, link: Mutex::default() })
    }

    /// Stores rows in the order of their ids, so that workers that store the same ones do not deadlock.
    async fn keep(&self, relation: &Relation<'_>, rows: impl Iterator<Item = Value>) -> Result<()> {
        let rows: BTreeMap<String, Value> =
            rows.map(|row| (row["id"].to_string(), fit(relation, &row))).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let mut place = self.link.lock().await;
        // Taken out during the call: if the call fails or is cancelled, the connection is in an unknown state.
        let link = match place.take().filter(Link::is_open) {
            Some(link) => link,
            None => self.server.connect(&[PAGES, CRAWLS, JOBS, LOGS]).await?,
        };
        let rows: Vec<Value> = rows.into_values().collect();
        for rows in rows.chunks(MAX_ROWS) {
            link.upsert(relation, &Value::from(rows).to_string()).await?;
        }
        *place = Some(link);
        Ok(())
    }
}

#[async_trait]
impl ports::History for PostgresHistory {
    fn name(&self) -> &str {
        &self.name
    }

    async fn keep_pages(&self, pages: &[PageEnd]) -> Result<()> {
        self.keep(&PAGES, pages.iter().map(page)).await
    }

    async fn keep_crawl(&self, stats: &CrawlStats) -> Result<()> {
        self.keep(&CRAWLS, std::iter::once(crawl(stats, UnixMs::now()))).await
    }

    async fn keep_jobs(&self, jobs: &[Job]) -> Result<()> {
        self.keep(&JOBS, jobs.iter().map(|one| job(one, UnixMs::now()))).await
    }

    async fn keep_logs(&self, entries: &[LogEntry]) -> Result<()> {
        self.keep(&LOGS, entries.iter().enumerate().map(|(place, entry)| log(place, entry))).await
    }
}

/// Returns a row with the values that its columns can hold.
fn fit(relation: &Relation<'_>, row: &Value) -> Value {
    let fitting: Map<String, Value> =
        relation.columns.iter().map(|(name, kind)| ((*name).to_owned(), kind.fit(&row[*name]))).collect();
    fitting.into()
}

fn page(end: &PageEnd) -> Value {
    let PageEnd { crawl, key, terminal, reason, status, attempts, ended, worker, items, bytes } = end;
    json!({
        "id": Fingerprint::from_text(&format!("{}\n{key}", crawl.id)).to_string(),
        "crawl": crawl.id.as_str(),
        "spider": crawl.spider.as_str(),
        "url": key.as_str(),
        "outcome": terminal.as_str(),
        "reason": reason,
        "status": status,
        "attempts": attempts,
        "ended": ended.to_string(),
        "worker": worker.as_str(),
        "items": items,
        "bytes": bytes,
    })
}

fn crawl(stats: &CrawlStats, now: UnixMs) -> Value {
    let took = Duration::try_from_secs_f64(stats.seconds).unwrap_or_default();
    let ended = stats.status.is_over().then(|| stats.started.plus(took).to_string());
    let counts = &stats.counts;
    json!({
        "id": stats.crawl.as_str(),
        "spider": stats.spider.as_str(),
        "status": stats.status.as_str(),
        "started": stats.started.to_string(),
        "ended": ended,
        "noted": now.to_string(),
        "admitted": counts.admitted,
        "done": counts.done,
        "failed": counts.failed,
        "skipped": counts.skipped,
        "expired": counts.expired,
        "cancelled": counts.cancelled,
        "pending": stats.pending,
        "bytes": stats.bytes,
        "reasons": stats.reasons,
    })
}

/// Returns the row of a log entry. Equal entries of one call at the same time become separate rows.
fn log(place: usize, entry: &LogEntry) -> Value {
    let LogEntry { time, level, worker, spider, crawl, host, key, class, message, ended: _ } = entry;
    let mut row = json!({
        "time": time.to_string(),
        "level": level,
        "worker": worker,
        "spider": spider,
        "crawl": crawl,
        "host": host,
        "key": key,
        "class": class,
        "message": message,
    });
    row["id"] = Fingerprint::from_text(&format!("{place}\n{row}")).to_string().into();
    row
}

fn job(job: &Job, now: UnixMs) -> Value {
    let run = job.run();
    json!({
        "id": job.new.id.as_str(),
        "project": job.new.project.as_str(),
        "spider": job.new.spider.as_str(),
        "version": job.new.version.as_ref().map(ToString::to_string),
        "arguments": job.new.arguments,
        "status": job.status().as_str(),
        "problem": job.problem().map(ToString::to_string),
        "asked": job.asked.to_string(),
        "started": run.map(|run| run.started.to_string()),
        "ended": job.ended().map(|at| at.to_string()),
        "noted": now.to_string(),
        "runner": run.map(|run| run.runner.as_str()),
    })
}

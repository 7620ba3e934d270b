//! Jobs in the state file: one row each. One that cannot be read is left alone, and does not hold up the others.

pub(crate) mod schedules;
pub(crate) mod spider_store;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, named_params, params};
use tokio::sync::Notify;
use trawl_common::jobs::{Hold, Job, JobOutcome, JobStatus, NewJob, Problem, StoredState};
use trawl_common::names::{CrawlId, WorkerId};
use trawl_common::ports::{self, Error, ErrorKind, JobCounts, JobFilter, JobPage, Jobs, Submitted};
use trawl_common::time::UnixMs;

use crate::embedded::store::Store;
use crate::embedded::store::error::{Fault, Result, unless_corrupt};
use crate::embedded::store::fields::{Fields, sql_ms};

/// The jobs of one state file.
pub(crate) struct EmbeddedJobs {
    store: Arc<Store>,
    submitted: Arc<Notify>,
    per_spider: NonZeroU32,
}

impl EmbeddedJobs {
    /// Creates the jobs in `store`; each spider runs `per_spider` at a time. `submitted` wakes a runner.
    pub(crate) fn new(store: Arc<Store>, submitted: Arc<Notify>, per_spider: NonZeroU32) -> Self {
        Self { store, submitted, per_spider }
    }
}

#[async_trait]
impl Jobs for EmbeddedJobs {
    async fn submit(&self, job: &NewJob) -> ports::Result<Submitted> {
        job.check().map_err(|invalid| Error::new(ErrorKind::Refused, invalid))?;
        let job = job.clone();
        let submitted = self.store.call(move |db, _| submit(db, job, UnixMs::now())).await?;
        if submitted == Submitted::New {
            self.submitted.notify_one();
        }
        Ok(submitted)
    }

    async fn take(&self, runner: &WorkerId, lease: Duration) -> ports::Result<Option<Job>> {
        let (runner, per_spider) = (runner.clone(), self.per_spider);
        self.store.call(move |db, _| take(db, &runner, lease, per_spider, UnixMs::now())).await
    }

    async fn extend(&self, runner: &WorkerId, jobs: &[CrawlId], lease: Duration) -> ports::Result<Vec<Hold>> {
        let (runner, jobs) = (runner.clone(), jobs.to_vec());
        let extend = move |db: &Connection, id: &CrawlId| {
            let held = change(db, id, |job| job.extend(&runner, lease, UnixMs::now()))?;
            Ok(held.unwrap_or(Hold::Lost))
        };
        self.store.call(move |db, _| jobs.iter().map(|id| extend(db, id)).collect()).await
    }

    async fn fed(&self, runner: &WorkerId, job: &CrawlId, problem: Option<Problem>) -> ports::Result<Hold> {
        let (runner, id) = (runner.clone(), job.clone());
        let held = self.store.call(move |db, _| change(db, &id, |job| job.fed(&runner, problem))).await?;
        Ok(held.unwrap_or(Hold::Lost))
    }

    async fn put_back(&self, runner: &WorkerId, job: &CrawlId, wait: Duration) -> ports::Result<()> {
        let (runner, id) = (runner.clone(), job.clone());
        let not_before = (!wait.is_zero()).then(|| UnixMs::now().plus(wait));
        self.store.call(move |db, _| change(db, &id, |job| job.put_back(&runner, not_before))).await?;
        Ok(())
    }

    async fn end(&self, job: &CrawlId, outcome: &JobOutcome) -> ports::Result<()> {
        let (id, outcome) = (job.clone(), outcome.clone());
        self.store.call(move |db, _| change(db, &id, |job| job.end(outcome, UnixMs::now()))).await?;
        self.submitted.notify_one();
        Ok(())
    }

    async fn cancel(&self, job: &CrawlId) -> ports::Result<Option<JobStatus>> {
        let id = job.clone();
        self.store.call(move |db, _| change(db, &id, |job| job.cancel(UnixMs::now()))).await
    }

    async fn look_after(&self, max: usize, pause: Duration) -> ports::Result<Vec<Job>> {
        self.store.call(move |db, _| look_after(db, max, pause, UnixMs::now())).await
    }

    async fn job(&self, id: &CrawlId) -> ports::Result<Option<Job>> {
        let id = id.clone();
        self.store.call(move |db, _| find(db, &id)).await
    }

    async fn list(&self, filter: &JobFilter, page: JobPage) -> ports::Result<Vec<Job>> {
        let filter = filter.clone();
        self.store.call(move |db, _| list(db, &filter, page)).await
    }

    async fn queued(&self, max: usize) -> ports::Result<Vec<Job>> {
        const LINE: &str = "WHERE status = 'pending' ORDER BY priority DESC, number";
        self.store.call(move |db, _| select(db, LINE, params![], max)).await
    }

    async fn counts(&self) -> ports::Result<JobCounts> {
        self.store.call(|db, _| counts(db)).await
    }

    async fn forget(&self, keep: usize, age: Duration) -> ports::Result<u64> {
        self.store.call(move |db, _| forget(db, keep, age, UnixMs::now())).await
    }

    async fn forget_one(&self, job: &CrawlId) -> ports::Result<bool> {
        let id = job.clone();
        let forget = "DELETE FROM jobs WHERE id = ?1 AND ended IS NOT NULL";
        self.store.call(move |db, _| Ok(db.execute(forget, [id.as_str()])? > 0)).await
    }

    async fn wake_up(&self) {
        self.submitted.notified().await;
    }
}

fn submit(db: &Connection, new: NewJob, now: UnixMs) -> Result<Submitted> {
    let key = new.idempotency_key.as_ref().map(|key| key.as_str());
    let known: Option<String> = db
        .prepare_cached("SELECT id FROM jobs WHERE id = ?1 OR idempotency_key = ?2 ORDER BY id = ?1 LIMIT 1")?
        .query_row(params![new.id.as_str(), key], |row| row.get(0))
        .optional()?;
    if let Some(id) = known {
        return Ok(Submitted::Known(id.parse().map_err(Fault::corrupt)?));
    }
    // Names, numbers and texts can always be serialised.
    let text = serde_json::to_string(&new).map_err(Fault::corrupt)?;
    db.prepare_cached(
        "INSERT INTO jobs (id, spider, priority, idempotency_key, new, asked, status, is_cancelled)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'pending', FALSE)",
    )?
    .execute(params![
        new.id.as_str(),
        new.spider.as_str(),
        new.priority.get(),
        key,
        text,
        sql_ms(now)
    ])?;
    Ok(Submitted::New)
}

fn take(
    db: &Connection,
    runner: &WorkerId,
    lease: Duration,
    per_spider: NonZeroU32,
    now: UnixMs,
) -> Result<Option<Job>> {
    for mut job in select(db, "WHERE until <= ?1", params![sql_ms(now)], usize::MAX)? {
        job.lapse(now);
        write(db, &job)?;
    }
    const FIRST: &str = "WHERE status = 'pending' AND until IS NULL
           AND NOT EXISTS (SELECT 1 FROM jobs AS other WHERE other.spider = jobs.spider AND other.until IS NOT NULL)
           AND (SELECT count(*) FROM jobs AS other WHERE other.spider = jobs.spider AND other.status = 'running') < ?1
         ORDER BY priority DESC, number";
    let Some(mut job) = select(db, FIRST, params![per_spider.get()], 1)?.pop() else { return Ok(None) };
    job.take(runner, lease, now);
    write(db, &job)?;
    Ok(Some(job))
}

fn look_after(db: &Connection, max: usize, pause: Duration, now: UnixMs) -> Result<Vec<Job>> {
    let before = sql_ms(now) - sql_count(pause.as_millis() as usize);
    const FED: &str = "WHERE status = 'running' AND until IS NULL AND looked <= ?1 ORDER BY looked, number";
    let jobs = select(db, FED, params![before], max)?;
    for job in &jobs {
        db.prepare_cached("UPDATE jobs SET looked = ?2 WHERE id = ?1")?
            .execute(params![job.new.id.as_str(), sql_ms(now)])?;
    }
    Ok(jobs)
}

fn list(db: &Connection, filter: &JobFilter, page: JobPage) -> Result<Vec<Job>> {
    let before = page.before.map_or(i64::MAX, sql_number);
    const NEWEST: &str = "WHERE number < ?1 ORDER BY number DESC";
    select_where(db, NEWEST, params![before], page.max, |job| filter.admits(job))
}

fn counts(db: &Connection) -> Result<JobCounts> {
    let count = |sql: &str| -> Result<u64> {
        Ok(db.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0))? as u64)
    };
    Ok(JobCounts {
        pending: count("SELECT count(*) FROM jobs WHERE status = 'pending'")?,
        running: count("SELECT count(*) FROM jobs WHERE status = 'running'")?,
        ended: count("SELECT count(*) FROM jobs WHERE ended IS NOT NULL")?,
    })
}

fn forget(db: &Connection, keep: usize, age: Duration, now: UnixMs) -> Result<u64> {
    let before = sql_ms(now) - sql_count(age.as_millis() as usize);
    let forgotten = db
        .prepare_cached(
            "DELETE FROM jobs WHERE ended <= ?1 AND number NOT IN
               (SELECT number FROM jobs WHERE ended IS NOT NULL ORDER BY ended DESC, number DESC LIMIT ?2)",
        )?
        .execute(params![before, sql_count(keep)])?;
    Ok(forgotten as u64)
}

/// Applies `change` to a job and returns its result; `None` if there is no such job.
fn change<T>(db: &Connection, id: &CrawlId, change: impl FnOnce(&mut Job) -> T) -> Result<Option<T>> {
    let Some(mut job) = find(db, id)? else { return Ok(None) };
    let said = change(&mut job);
    write(db, &job)?;
    Ok(Some(said))
}

fn write(db: &Connection, job: &Job) -> Result<()> {
    let StoredState { status, runner, started, until, is_cancelled, problem, ended } =
        StoredState::from(&job.state);
    db.prepare_cached(
        "UPDATE jobs SET status = :status, runner = :runner, started = :started, until = :until,
           is_cancelled = :is_cancelled, problem = :problem, ended = :ended WHERE id = :id",
    )?
    .execute(named_params! {
        ":id": job.new.id.as_str(),
        ":status": status.as_str(),
        ":runner": runner.as_ref().map(WorkerId::as_str),
        ":started": started.map(sql_ms),
        ":until": until.map(sql_ms),
        ":is_cancelled": is_cancelled,
        ":problem": problem.as_ref().map(Problem::as_str),
        ":ended": ended.map(sql_ms),
    })?;
    Ok(())
}

fn find(db: &Connection, id: &CrawlId) -> Result<Option<Job>> {
    let mut select = db.prepare_cached("SELECT * FROM jobs WHERE id = ?1")?;
    select.query_row([id.as_str()], |row| Ok(read(row))).optional()?.transpose()
}

/// Returns the first `max` jobs that can be read.
fn select(db: &Connection, which: &str, parameters: &[&dyn ToSql], max: usize) -> Result<Vec<Job>> {
    select_where(db, which, parameters, max, |_| true)
}

/// Returns the first `max` of these that also pass the filter.
fn select_where(
    db: &Connection,
    which: &str,
    parameters: &[&dyn ToSql],
    max: usize,
    is_meant: impl Fn(&Job) -> bool,
) -> Result<Vec<Job>> {
    let mut select = db.prepare_cached(&format!("SELECT * FROM jobs {which}"))?;
    let mut rows = select.query(parameters)?;
    let mut jobs = Vec::new();
    while jobs.len() < max
        && let Some(row) = rows.next()?
    {
        jobs.extend(unless_corrupt(read(row))?.filter(&is_meant));
    }
    Ok(jobs)
}

fn read(row: &Row<'_>) -> Result<Job> {
    let fields = Fields::new(row, "job", "id");
    let new = row.get_ref("new")?.as_str().ok().and_then(|text| serde_json::from_str(text).ok());
    let stored = StoredState {
        status: fields.text("status")?,
        runner: fields.optional_text("runner")?,
        started: fields.optional_instant("started")?,
        until: fields.optional_instant("until")?,
        is_cancelled: fields.number::<u8>("is_cancelled")? == 1,
        problem: fields.optional_text::<String>("problem")?.map(Problem::new),
        ended: fields.optional_instant("ended")?,
    };
    Ok(Job {
        new: new.ok_or_else(|| fields.unreadable("new"))?,
        number: fields.number("number")?,
        asked: fields.instant("asked")?,
        state: stored.try_into().map_err(|_| fields.unreadable("status"))?,
    })
}

fn sql_number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn sql_count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

//! Jobs on Redis: `jobs`, the waitlist of pending jobs, and a hash for each job, `job:<id>`. `jobs/queue.lua`
//! lists the other keys. A job that cannot be read is left alone, and does not delay others.

pub(crate) mod schedules;
pub(crate) mod spider_store;

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redis::{ScriptInvocation, Value};
use tracing::{debug, warn};
use trawl_common::jobs::{Hold, Job, JobOutcome, JobStatus, NewJob, Problem, StoredState};
use trawl_common::names::{CrawlId, WorkerId};
use trawl_common::ports::{Error, ErrorKind, JobCounts, JobFilter, JobPage, Jobs, Result, Submitted};
use trawl_common::time::UnixMs;

use crate::journal::Record;
use crate::left_out::LeftOut;
use crate::rabbitmq::JobWakeUps;
use crate::redis::fields::Fields;
use crate::redis::journal::{Journaled, RedisJournal};
use crate::redis::keys::{self, JobKeys};
use crate::redis::script_calls::corrupt;
use crate::redis::scripts::{Clock, Guard, JobScripts};
use crate::redis::{Link, failed};

/// Number of jobs that are read at a time.
const READ_BATCH: usize = 500;

/// The jobs of a fleet.
pub struct RedisJobs {
    redis: Link,
    keys: JobKeys,
    scripts: JobScripts,
    per_spider: NonZeroU32,
    wake_ups: Option<Arc<JobWakeUps>>,
    journal: Journaled,
    left_out: LeftOut,
}

impl RedisJobs {
    /// Creates the jobs port on this connection; each spider runs `per_spider` jobs at a time. No worker is woken for a
    /// job.
    pub fn new(redis: Link, per_spider: NonZeroU32) -> Self {
        let keys = JobKeys::new(redis.is_cluster());
        let (wake_ups, journal, left_out) = Default::default();
        let scripts = JobScripts::new(Clock::SERVER, Guard::None);
        Self { redis, keys, scripts, per_spider, wake_ups, journal, left_out }
    }

    /// Also writes every change to the journal.
    #[must_use]
    pub(crate) fn with_journal(self, journal: Arc<RedisJournal>) -> Self {
        let scripts = JobScripts::new(Clock::SERVER, Guard::Journal);
        Self { journal: Journaled::by(journal), scripts, ..self }
    }

    /// Also wakes workers with `wake_ups`.
    #[must_use]
    pub fn with_wake_ups(self, wake_ups: Arc<JobWakeUps>) -> Self {
        Self { wake_ups: Some(wake_ups), ..self }
    }

    fn call<'a>(&self, script: &'a redis::Script) -> ScriptInvocation<'a> {
        let mut call = script.key(keys::JOBS);
        call.arg(self.keys.prefix()).arg(self.per_spider.get());
        call
    }

    /// Runs a script, once the store has caught up with the journal.
    async fn run<T: redis::FromRedisValue>(&self, call: &ScriptInvocation<'_>) -> Result<T> {
        self.journal.run(&self.redis, call).await
    }

    /// Writes a job to the journal, and marks it as written.
    async fn keep(&self, job: &NewJob, number: u64, asked: UnixMs) -> Result<()> {
        if !self.journal.is_there() {
            return Ok(());
        }
        self.journal.append(|| Record::Submitted { new: Box::new(job.clone()), number, asked }).await?;
        let mut call = self.call(&self.scripts.kept);
        self.redis.run(call.arg(job.id.as_str())).await
    }

    /// Writes to the journal that a job was taken. Without this, a store that loses the job would let another worker
    /// feed it, which costs fetches but loses nothing.
    async fn keep_taken(&self, job: &Job, lease: Duration) {
        let Some(run) = job.run().cloned() else { return };
        let record = || {
            let (job, lease) = (job.new.id.clone(), lease.as_millis() as u64);
            Record::Taken { job, runner: run.runner, started: run.started, lease }
        };
        if let Err(error) = self.journal.append(record).await {
            debug!(job = %job.new.id, %error, "the journal does not say who feeds a job");
        }
    }

    /// Wakes a worker. A wake-up that cannot be sent costs a few seconds: waiting workers also poll.
    async fn wake(&self) {
        if let Some(wake_ups) = &self.wake_ups
            && let Err(error) = wake_ups.send().await
        {
            warn!(%error, "nobody was woken for a job; workers find it by themselves within seconds");
        }
    }

    /// Returns the stored hashes of jobs, in the order of `ids`.
    async fn stored(&self, ids: &[String]) -> Result<Vec<Value>> {
        let mut call = self.call(&self.scripts.read);
        self.redis.run(call.arg(ids)).await
    }

    /// Returns the readable jobs among these ids, in the order of `ids`.
    async fn read(&self, ids: &[String]) -> Result<Vec<Job>> {
        let mut jobs = Vec::new();
        for part in ids.chunks(READ_BATCH) {
            let stored = part.iter().cloned().zip(self.stored(part).await?);
            // A missing one has been forgotten in the meantime.
            jobs.extend(self.readable(stored.filter(|(_, stored)| !is_empty(stored)))?);
        }
        Ok(jobs)
    }

    fn readable(&self, jobs: impl IntoIterator<Item = (String, Value)>) -> Result<Vec<Job>> {
        let read = |(id, stored): (String, Value)| self.left_out.unless_corrupt(self.job_of(&id, stored));
        jobs.into_iter().filter_map(|job| read(job).transpose()).collect()
    }

    fn job_of(&self, id: &str, stored: Value) -> Result<Job> {
        let key = self.keys.job(id);
        match redis::from_redis_value::<HashMap<String, String>>(stored) {
            Ok(stored) => job_of(Fields::new(key, stored), id),
            Err(_) => Err(Fields::new(key, HashMap::new()).nonsense(&"no texts by their names")),
        }
    }
}

#[async_trait]
impl Jobs for RedisJobs {
    async fn submit(&self, job: &NewJob) -> Result<Submitted> {
        job.check().map_err(|invalid| Error::new(ErrorKind::Refused, invalid))?;
        let mut call = self.call(&self.scripts.submit);
        call.arg(job.id.as_str()).arg(job.spider.as_str()).arg(job.priority.to_string());
        call.arg(job.idempotency_key.as_ref().map_or("", |key| key.as_str()));
        for (name, value) in fields_of(job)? {
            call.arg(name).arg(value);
        }
        let unreadable = || corrupt("jobs/submit");
        let (first, second, what): (String, String, String) = self.run(&call).await?;
        if what == "new" {
            let number = first.parse().map_err(|_| unreadable())?;
            self.keep(job, number, UnixMs(second.parse().map_err(|_| unreadable())?)).await?;
            self.wake().await;
            return Ok(Submitted::New);
        }
        let id: CrawlId = first.parse().map_err(|_| unreadable())?;
        // An earlier caller may have been told that it failed.
        if second.is_empty()
            && let Some(known) = self.job(&id).await?
        {
            self.keep(&known.new, known.number, known.asked).await?;
        }
        Ok(Submitted::Known(id))
    }

    async fn take(&self, runner: &WorkerId, lease: Duration) -> Result<Option<Job>> {
        let mut call = self.call(&self.scripts.take);
        call.arg(runner.as_str()).arg(lease.as_millis() as u64);
        loop {
            let (passed, id, stored): (Vec<String>, Option<String>, Value) = self.run(&call).await?;
            if !passed.is_empty() {
                // Unreadable jobs are logged.
                self.read(&passed).await?;
            }
            let Some(id) = id else { return Ok(None) };
            // An unreadable job keeps its spider busy until the lease lapses; the next job is one of another spider.
            if let Some(job) = self.left_out.unless_corrupt(self.job_of(&id, stored))? {
                self.keep_taken(&job, lease).await;
                return Ok(Some(job));
            }
        }
    }

    async fn extend(&self, runner: &WorkerId, jobs: &[CrawlId], lease: Duration) -> Result<Vec<Hold>> {
        let mut call = self.call(&self.scripts.extend);
        call.arg(runner.as_str()).arg(lease.as_millis() as u64);
        for job in jobs {
            call.arg(job.as_str());
        }
        let holds: Vec<String> = self.run(&call).await?;
        holds.iter().map(|hold| hold_of(hold)).collect()
    }

    async fn fed(&self, runner: &WorkerId, job: &CrawlId, problem: Option<Problem>) -> Result<Hold> {
        // Before the change itself: a call that fails is repeated.
        let text = problem.as_ref().map(|problem| problem.as_str().to_owned());
        self.journal.append(|| Record::Fed { job: job.clone(), problem: text }).await?;
        let mut call = self.call(&self.scripts.fed);
        call.arg(runner.as_str()).arg(job.as_str()).arg(problem.as_ref().map_or("", Problem::as_str));
        hold_of(&self.run::<String>(&call).await?)
    }

    async fn put_back(&self, runner: &WorkerId, job: &CrawlId, wait: Duration) -> Result<()> {
        let mut call = self.call(&self.scripts.put_back);
        call.arg(runner.as_str()).arg(job.as_str()).arg(wait.as_millis() as u64);
        self.run(&call).await
    }

    async fn end(&self, job: &CrawlId, outcome: &JobOutcome) -> Result<()> {
        // Before the change itself, for the same reason.
        self.journal.append(|| Record::ended(job, outcome, UnixMs::now())).await?;
        let mut call = self.call(&self.scripts.end);
        call.arg(job.as_str()).arg(outcome.status().as_str());
        call.arg(outcome.problem().map_or("", Problem::as_str));
        let () = self.run(&call).await?;
        // Its spider may run the next job.
        self.wake().await;
        Ok(())
    }

    async fn cancel(&self, job: &CrawlId) -> Result<Option<JobStatus>> {
        let mut call = self.call(&self.scripts.cancel);
        let was: Option<String> = self.run(call.arg(job.as_str())).await?;
        let was = was.map(|was| was.parse().map_err(|_| corrupt("jobs/cancel"))).transpose()?;
        // Also once it is cancelled: an earlier caller may have been told that it failed.
        if matches!(was, Some(JobStatus::Pending | JobStatus::Running | JobStatus::Cancelled)) {
            self.journal.append(|| Record::Cancelled { job: job.clone() }).await?;
        }
        Ok(was)
    }

    async fn look_after(&self, max: usize, pause: Duration) -> Result<Vec<Job>> {
        let mut call = self.call(&self.scripts.look_after);
        call.arg(max.min(READ_BATCH)).arg(pause.as_millis() as u64);
        let found: Vec<(String, Value)> = self.run(&call).await?;
        self.readable(found)
    }

    async fn job(&self, id: &CrawlId) -> Result<Option<Job>> {
        let mut call = self.call(&self.scripts.job);
        call.arg(id.as_str());
        let stored: Vec<Value> = match self.run(&call).await {
            // The store may be complete, and the journal cannot be read now.
            Err(error) if error.is_temporary() => self.stored(&[id.to_string()]).await?,
            stored => stored?,
        };
        let stored = stored.into_iter().next().filter(|stored| !is_empty(stored));
        stored.map(|stored| self.job_of(id.as_str(), stored)).transpose()
    }

    async fn list(&self, filter: &JobFilter, page: JobPage) -> Result<Vec<Job>> {
        let (mut found, mut before) = (Vec::new(), page.before);
        while found.len() < page.max {
            let mut part = redis::cmd("ZREVRANGEBYSCORE");
            part.arg(keys::ALL_JOBS).arg(before.map_or("+inf".to_owned(), |before| format!("({before}")));
            part.arg("-inf").arg("WITHSCORES").arg("LIMIT").arg(0).arg(READ_BATCH);
            let part: Vec<(String, u64)> = self.redis.query(&part).await?;
            let Some((_, last)) = part.last() else { break };
            before = Some(*last);
            let ids: Vec<String> = part.into_iter().map(|(id, _)| id).collect();
            found.extend(self.read(&ids).await?.into_iter().filter(|job| filter.admits(job)));
        }
        found.truncate(page.max);
        Ok(found)
    }

    async fn queued(&self, max: usize) -> Result<Vec<Job>> {
        if max == 0 {
            return Ok(Vec::new());
        }
        let line: Vec<String> =
            self.redis.query(redis::cmd("ZRANGE").arg(keys::JOBS).arg(0).arg(max - 1)).await?;
        // Each entry is the number, a blank, and the id.
        let ids: Vec<String> =
            line.iter().filter_map(|entry| entry.split_once(' ')).map(|(_, id)| id.to_owned()).collect();
        self.read(&ids).await
    }

    async fn counts(&self) -> Result<JobCounts> {
        let mut pipeline = redis::pipe();
        for key in [keys::ALL_JOBS, keys::JOBS, keys::ENDED_JOBS] {
            pipeline.cmd("ZCARD").arg(key);
        }
        let (all, pending, ended): (u64, u64, u64) =
            pipeline.query_async(&mut self.redis.clone()).await.map_err(failed)?;
        Ok(JobCounts { pending, running: all.saturating_sub(pending + ended), ended })
    }

    async fn forget(&self, keep: usize, age: Duration) -> Result<u64> {
        let mut call = self.call(&self.scripts.forget);
        self.run(call.arg(keep).arg(age.as_millis() as u64)).await
    }

    async fn forget_one(&self, job: &CrawlId) -> Result<bool> {
        let mut call = self.call(&self.scripts.forget);
        Ok(self.run::<u64>(call.arg(job.as_str())).await? > 0)
    }

    async fn wake_up(&self) {
        match &self.wake_ups {
            Some(wake_ups) => wake_ups.next().await,
            None => std::future::pending().await,
        }
    }
}

/// Whether nothing is stored.
fn is_empty(stored: &Value) -> bool {
    matches!(stored, Value::Array(fields) if fields.is_empty())
}

fn hold_of(text: &str) -> Result<Hold> {
    match text {
        "kept" => Ok(Hold::Kept),
        "cancelled" => Ok(Hold::Cancelled),
        "lost" => Ok(Hold::Lost),
        _ => Err(corrupt("jobs")),
    }
}

/// Returns a submission as fields of a hash, with lists and tables as JSON.
pub(crate) fn fields_of(job: &NewJob) -> Result<Vec<(&'static str, String)>> {
    let json = |value: serde_json::Result<String>| {
        value.map_err(|error| {
            Error::new(ErrorKind::Refused, format_args!("a job that cannot be written: {error}"))
        })
    };
    let mut fields = vec![
        ("project", job.project.to_string()),
        ("spider", job.spider.to_string()),
        ("priority", job.priority.to_string()),
        ("urls", json(serde_json::to_string(&job.urls))?),
        ("sources", json(serde_json::to_string(&job.sources))?),
        ("arguments", json(serde_json::to_string(&job.arguments))?),
        ("settings", json(serde_json::to_string(&job.settings))?),
    ];
    fields.extend(job.is_scheduled.then(|| ("scheduled", "1".to_owned())));
    fields.extend(job.version.as_ref().map(|version| ("version", version.to_string())));
    if !job.ignored.is_empty() {
        fields.push(("ignored", json(serde_json::to_string(&job.ignored))?));
    }
    fields.extend(job.idempotency_key.as_ref().map(|key| ("idempotency_key", key.to_string())));
    Ok(fields)
}

fn job_of(fields: Fields, id: &str) -> Result<Job> {
    let new = NewJob {
        id: id.parse().map_err(|_| corrupt("jobs"))?,
        project: fields.required("project")?,
        spider: fields.required("spider")?,
        urls: fields.json("urls")?,
        sources: fields.json("sources")?,
        arguments: fields.json("arguments")?,
        settings: fields.json("settings")?,
        version: fields.read("version")?,
        is_scheduled: fields.count("scheduled")? > 0,
        priority: fields.required("priority")?,
        idempotency_key: fields.read("idempotency_key")?,
        ignored: match fields.read::<String>("ignored")? {
            Some(_) => fields.json("ignored")?,
            None => Vec::new(),
        },
    };
    let instant = |name| -> Result<Option<UnixMs>> { Ok(fields.read(name)?.map(UnixMs)) };
    let stored = StoredState {
        status: fields.required("status")?,
        runner: fields.read("runner")?,
        started: instant("started")?,
        until: instant("until")?,
        is_cancelled: fields.count("cancel")? == 1,
        problem: fields.read::<String>("problem")?.map(Problem::new),
        ended: instant("ended")?,
    };
    let state = stored.try_into().map_err(|impossible| fields.nonsense(&impossible))?;
    Ok(Job { new, number: fields.required("number")?, asked: UnixMs(fields.required("asked")?), state })
}

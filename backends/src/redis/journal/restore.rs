//! Exchange between a store and the stream `journal`: restoring what the store has lost, and writing what the
//! stream lacks.

use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroU32;
use std::time::Duration;

use trawl_common::jobs::{Job, StoredState};
use trawl_common::names::ProjectName;
use trawl_common::ports::{JobFilter, JobPage, Jobs, Result, Schedules, SpiderStore};
use trawl_common::spider::FileHash;
use trawl_common::time::UnixMs;

use crate::journal::{Logged, LoggedJob, LoggedProject, Record};
use crate::redis::jobs::fields_of;
use crate::redis::jobs::schedules::stored;
use crate::redis::journal::RedisJournal;
use crate::redis::keys::{self, JobKeys};
use crate::redis::scripts::{Clock, Guard, JobScripts, ScheduleScripts, VersionScripts};
use crate::redis::{RedisJobs, RedisSchedules, RedisSpiderStore};

/// Age from which a record is written again.
const REWRITE_AGE: Duration = Duration::from_secs(12 * 3600);

/// Number of jobs read at a time.
const READ_BATCH: usize = 500;

impl RedisJournal {
    /// Brings the store up to the journal, and never back. Returns the number of jobs that it had forgotten.
    pub(crate) async fn restore(&self, logged: &Logged) -> Result<u64> {
        // The projects first: once a job is there, its spider is looked up.
        for (project, known) in &logged.projects {
            self.restore_project(project, known).await?;
        }
        for (spider, known) in &logged.schedules {
            let scripts = ScheduleScripts::new();
            let mut call = scripts.restore.key(keys::SCHEDULES);
            let () = self.redis.run(call.arg(spider.to_string()).arg(stored(known.state))).await?;
        }
        let scripts = JobScripts::new(Clock::SERVER, Guard::None);
        let mut forgotten = 0;
        for known in logged.jobs.values() {
            forgotten += u64::from(self.restore_job(&scripts, known).await?);
        }
        Ok(forgotten)
    }

    async fn restore_project(&self, project: &ProjectName, known: &LoggedProject) -> Result<()> {
        if !known.versions.is_empty() {
            let list = redis::cmd("SADD").arg(keys::PROJECTS).arg(project.as_str()).to_owned();
            let () = self.redis.query(&list).await?;
        }
        let scripts = VersionScripts::new(Clock::SERVER);
        let mut call = scripts.restore.key(keys::project(project));
        call.arg(known.number).arg(known.versions.len());
        for (name, version) in &known.versions {
            call.arg(name.as_str()).arg(version.number).arg(version.added.0).arg(version.spiders.len());
            for (spider, text) in &version.spiders {
                call.arg(spider.as_str()).arg(FileHash::from_text(text).to_string()).arg(text);
            }
        }
        for (name, number) in &known.removed {
            call.arg(name.as_str()).arg(*number);
        }
        let left: u64 = self.redis.run(&call).await?;
        if left == 0 {
            let unlist = redis::cmd("SREM").arg(keys::PROJECTS).arg(project.as_str()).to_owned();
            let () = self.redis.query(&unlist).await?;
        }
        Ok(())
    }

    async fn restore_job(&self, scripts: &JobScripts, known: &LoggedJob) -> Result<bool> {
        let Job { new, number, asked, state } = &known.job;
        let StoredState { status, runner, started, until, is_cancelled, problem, ended } = state.into();
        let mut call = scripts.restore.key(keys::JOBS);
        call.arg(JobKeys::new(self.redis.is_cluster()).prefix()).arg(1);
        call.arg(new.id.as_str()).arg(new.spider.as_str()).arg(new.priority.to_string());
        call.arg(new.idempotency_key.as_ref().map_or("", |key| key.as_str()));
        call.arg(*number).arg(asked.0).arg(status.as_str()).arg(if is_cancelled { "1" } else { "" });
        call.arg(runner.as_ref().map_or("", |runner| runner.as_str()));
        let text = |number: Option<u128>| number.map(|number| number.to_string()).unwrap_or_default();
        call.arg(text(started.map(|at| at.0.into()))).arg(text(until.map(|_| known.lease.as_millis())));
        call.arg(problem.as_ref().map_or("", |problem| problem.as_str()));
        call.arg(text(ended.map(|at| at.0.into())));
        for (name, value) in fields_of(new)? {
            call.arg(name).arg(value);
        }
        self.redis.run(&call).await
    }

    /// Returns the records that the stream lacks and the store has, and the ends of what the store knows to be
    /// over.
    pub(crate) async fn missing_from(&self, logged: &Logged, now: UnixMs) -> Result<Vec<Record>> {
        let mut missing = self.missing_jobs(logged, now).await?;
        missing.extend(self.missing_versions(logged, now).await?);
        let store = RedisSchedules::new(self.redis.clone());
        for (spider, state) in store.list().await? {
            let known = logged.schedules.get(&spider);
            if known.is_none_or(|known| known.state != state || is_old(known.written, now)) {
                missing.push(Record::schedule(&spider, state));
            }
        }
        Ok(missing)
    }

    async fn missing_jobs(&self, logged: &Logged, now: UnixMs) -> Result<Vec<Record>> {
        let store = RedisJobs::new(self.redis.clone(), NonZeroU32::MIN);
        let (mut missing, mut open, mut before) = (Vec::new(), HashSet::new(), None);
        let mut over = BTreeMap::new();
        loop {
            let jobs = store.list(&JobFilter::default(), JobPage { before, max: READ_BATCH }).await?;
            let Some(last) = jobs.last() else { break };
            before = Some(last.number);
            for job in jobs {
                let known = logged.jobs.get(&job.new.id);
                if job.status().is_over() {
                    over.insert(job.new.id.clone(), job);
                    continue;
                }
                open.insert(job.new.id.clone());
                if known.is_none_or(|known| is_old(known.written, now)) {
                    missing.extend(Record::of_job(&job, now));
                }
            }
        }
        // Programs that know no journal end jobs and forget them.
        for (id, known) in &logged.jobs {
            if known.job.status().is_over() || open.contains(id) {
                continue;
            }
            match over.get(id) {
                Some(job) => missing.extend(Record::of_job(job, now)),
                None => missing.push(Record::forgotten(id, now)),
            }
        }
        Ok(missing)
    }

    async fn missing_versions(&self, logged: &Logged, now: UnixMs) -> Result<Vec<Record>> {
        let store = RedisSpiderStore::new(self.redis.clone());
        let mut missing = Vec::new();
        let projects = store.projects().await?;
        for project in &projects {
            let known = logged.projects.get(project);
            for (version, number, added, spiders) in store.whole(project).await? {
                let logged = known.and_then(|known| known.versions.get(&version));
                if logged.is_none_or(|known| known.number < number || is_old(known.written, now)) {
                    let project = project.clone();
                    missing.push(Record::Deployed { project, version, number, added, spiders });
                }
            }
        }
        for (project, known) in &logged.projects {
            let here = match projects.contains(project) {
                true => store.versions(project).await?.into_iter().map(|one| one.version).collect(),
                false => HashSet::new(),
            };
            let gone = known.versions.keys().filter(|version| !here.contains(*version));
            let number = known.number + 1;
            missing.extend(gone.map(|version| Record::Removed {
                project: project.clone(),
                version: Some(version.clone()),
                number,
            }));
        }
        Ok(missing)
    }
}

fn is_old(written: UnixMs, now: UnixMs) -> bool {
    written.plus(REWRITE_AGE) < now
}

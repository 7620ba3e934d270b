//! Jobs: asking for them, and how they stand.

use std::sync::Arc;

use axum::extract::State;
use serde_json::{Value, json};
use trawl_common::jobs::{Job, JobOverrides, JobStatus, NewJob, cancel as cancel_job};
use trawl_common::names::{CrawlId, ProjectName, SpiderName};
use trawl_common::ports::{ErrorKind, JobFilter, JobPage, Submitted};
use trawl_common::spider::arguments::{Argument, Arguments};
use trawl_common::time::UnixMs;

use super::form::Parameters;
use super::{Answer, Done, Refusal};
use crate::spiders::{Unrunnable, check, missing};
use crate::{Api, Backend};

/// So many jobs of each kind are listed at most.
const LISTED: usize = 1_000;

/// `daemonstatus.json`: how many jobs there are, of one project or of all.
pub(super) async fn daemon_status(State(api): State<Arc<Api>>, mut sent: Parameters) -> Answer {
    let jobs = &api.backend.jobs;
    let (pending, running, finished) = match sent.optional::<ProjectName>("project")? {
        None => {
            let counts = jobs.counts().await?;
            (counts.pending, counts.running, counts.ended)
        }
        Some(project) => {
            let all = api.jobs_of(Some(project), None).await?;
            let count =
                |is_it: fn(JobStatus) -> bool| all.iter().filter(|job| is_it(job.status())).count() as u64;
            (
                count(|status| status == JobStatus::Pending),
                count(|status| status == JobStatus::Running),
                count(JobStatus::is_over),
            )
        }
    };
    Done::with(json!({ "pending": pending, "running": running, "finished": finished }))
}

/// `schedule.json`: every parameter that is none of Scrapyd's is an argument of the spider.
pub(super) async fn schedule(State(api): State<Arc<Api>>, mut sent: Parameters) -> Answer {
    let id = sent.optional("jobid")?.unwrap_or_else(|| CrawlId::generate(UnixMs::now()));
    let (project, spider): (ProjectName, SpiderName) = (sent.required("project")?, sent.required("spider")?);
    let mut new = NewJob { project, ..NewJob::new(id, spider) };
    new.version = sent.optional("_version")?;
    new.priority = sent.optional("priority")?.unwrap_or_default();
    for setting in sent.all("setting") {
        set(&mut new.settings, &setting)?;
    }
    let arguments = sent.rest().into_iter().map(|(name, value)| {
        let name = name.parse().map_err(Refusal::of)?;
        Ok(Argument { name, value: value.parse().map_err(Refusal::of)? })
    });
    new.arguments = Arguments::of(arguments.collect::<Result<Vec<_>, Refusal>>()?).map_err(Refusal::of)?;
    new.check().map_err(Refusal::of)?;
    api.check(&new).await.map_err(|wrong| match wrong {
        Unrunnable::Port(error) => Refusal::from(error),
        wrong => Refusal::of(wrong),
    })?;
    let id = match api.backend.jobs.submit(&new).await? {
        Submitted::New => new.id,
        Submitted::Known(id) => id,
    };
    Done::with(json!({ "jobid": id }))
}

/// Sets what a job can have in place of its spider's file. Scrapy's setting of the same meaning has another name.
fn set(settings: &mut JobOverrides, setting: &str) -> Result<(), Refusal> {
    let wrong = || Refusal::of(format_args!("setting: `{setting}` is not NAME=VALUE"));
    let (name, value) = setting.split_once('=').ok_or_else(wrong)?;
    let name = if name == "CLOSESPIDER_PAGECOUNT" { "max_pages" } else { name };
    settings.set(name, value).map_err(|error| {
        Refusal::of(format_args!("setting: {error}; how hosts are asked is for the spider's file to say"))
    })
}

/// `cancel.json`. A signal is of no meaning here.
pub(super) async fn cancel(State(api): State<Arc<Api>>, mut sent: Parameters) -> Answer {
    let (project, id): (ProjectName, CrawlId) = (sent.required("project")?, sent.required("job")?);
    let job = api.backend.jobs.job(&id).await?.filter(|job| job.new.project == project);
    let before = match job {
        None => None,
        Some(job) if job.status().is_over() => None,
        Some(job) => {
            let Backend { jobs, control, stats, .. } = &api.backend;
            match cancel_job(&job.new.crawl(), &**jobs, &**control, &**stats).await {
                // It has ended meanwhile.
                Err(error) if error.kind == ErrorKind::Stale => None,
                cancelled => cancelled.map(|_| Some(word(job.status())))?,
            }
        }
    };
    Done::with(json!({ "prevstate": before }))
}

/// `status.json`: the state of one job.
pub(super) async fn status(State(api): State<Arc<Api>>, mut sent: Parameters) -> Answer {
    let (id, project): (CrawlId, Option<ProjectName>) = (sent.required("job")?, sent.optional("project")?);
    let job = api.backend.jobs.job(&id).await?;
    let job = job.filter(|job| project.is_none_or(|project| project == job.new.project));
    Done::with(json!({ "currstate": job.map_or("unknown", |job| word(job.status())) }))
}

/// `listjobs.json`: those that are pending as their turn comes, the others by when they were asked for.
pub(super) async fn list_jobs(State(api): State<Arc<Api>>, mut sent: Parameters) -> Answer {
    let project: Option<ProjectName> = sent.optional("project")?;
    let line = api.backend.jobs.line(LISTED).await?;
    let pending =
        line.iter().filter(|job| project.as_ref().is_none_or(|project| *project == job.new.project));
    let pending: Vec<Value> = pending.map(shown).collect();
    let mut running = api.jobs_of(project.clone(), Some(JobStatus::Running)).await?;
    let mut finished = api.jobs_of(project, None).await?;
    finished.retain(|job| job.status().is_over());
    running.reverse();
    finished.reverse();
    let all = |jobs: &[Job]| jobs.iter().map(shown).collect::<Vec<_>>();
    Done::with(json!({ "pending": pending, "running": all(&running), "finished": all(&finished) }))
}

/// Scrapyd's word for it: it knows no other end.
fn word(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Pending => "pending",
        JobStatus::Running => "running",
        JobStatus::Finished | JobStatus::Failed | JobStatus::Cancelled => "finished",
    }
}

/// A job as Scrapyd lists it. There is no process of its own, and no file for its log or its items.
fn shown(job: &Job) -> Value {
    let new = &job.new;
    let mut shown = json!({ "id": new.id, "project": new.project, "spider": new.spider });
    let more = match job.status() {
        JobStatus::Pending => json!({
            "version": new.version, "settings": new.settings, "args": new.arguments,
            "priority": new.priority,
        }),
        status => {
            let start = time(job.run().map_or(job.asked, |run| run.started));
            let mut ran = json!({ "start_time": start, "log_url": null, "items_url": null });
            let end = match job.ended() {
                Some(ended) => json!({
                    "end_time": time(ended), "outcome": status.as_str(), "problem": job.problem().map(|problem| problem.as_str()),
                }),
                None => json!({ "pid": null }),
            };
            merge(&mut ran, end);
            ran
        }
    };
    merge(&mut shown, more);
    shown
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}

/// An instant as Scrapyd writes it: `2012-09-12 10:14:03.594664`.
fn time(at: UnixMs) -> String {
    format!("{}000", at.to_string().replace('T', " ").trim_end_matches('Z'))
}

impl Api {
    /// Checks a job as Scrapyd does: its spider must be deployed, or be here in the default project.
    async fn check(&self, new: &NewJob) -> Result<(), Unrunnable> {
        let Backend { spider_store, settings, .. } = &self.backend;
        let is_deployed = spider_store.text(&new.project, new.version.as_ref(), &new.spider).await?.is_some();
        let is_here = || self.spiders_here().contains(&new.spider) || new.spider == SpiderName::default();
        if !is_deployed && (new.project != ProjectName::default() || !is_here()) {
            return Err(missing(&**spider_store, new).await?);
        }
        check(&**spider_store, new, settings).await
    }

    /// Jobs of a project or of all, the newest first.
    async fn jobs_of(
        &self,
        project: Option<ProjectName>,
        status: Option<JobStatus>,
    ) -> Result<Vec<Job>, Refusal> {
        let filter = JobFilter { project, status, spider: None };
        Ok(self.backend.jobs.list(&filter, JobPage { before: None, max: LISTED }).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_as_scrapyd_writes_them() {
        assert_eq!(time(UnixMs(1_700_000_000_123)), "2023-11-14 22:13:20.123000");
    }
}

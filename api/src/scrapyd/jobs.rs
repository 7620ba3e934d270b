//! Submitting and listing jobs.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use serde_json::{Value, json};
use trawl_common::cancel::cancel_crawl;
use trawl_common::jobs::{InvalidOverride, Job, JobStatus, NewJob, Problem};
use trawl_common::names::{CrawlId, ProjectName, SpiderName};
use trawl_common::ports::{ErrorKind, JobFilter, JobPage, Submitted};
use trawl_common::spider::arguments::{Argument, Arguments};
use trawl_common::spider::file::{Reading, with_arguments};
use trawl_common::spider::folder::Folder;
use trawl_common::text::printable;
use trawl_common::time::UnixMs;

use super::form::Parameters;
use super::{Answer, Done, Refusal};
use crate::spiders::{Found, Unrunnable, check_arguments, find, missing};
use crate::{Api, Backend};

/// Maximum number of jobs listed of each kind.
const MAX_LISTED: usize = 1_000;

/// Maximum number of settings that are noted as ignored.
const MAX_IGNORED: usize = 100;

/// Maximum length of the name of an ignored setting.
const MAX_NAME: usize = 64;

/// Scrapy's setting that a job does as well.
const PAGE_COUNT: &str = "CLOSESPIDER_PAGECOUNT";

/// The argument through which a spider takes Scrapy's settings, as a JSON object.
const SETTINGS: &str = "scrapy_settings";

/// The final states of a job; Scrapyd has only one.
pub(super) const ENDED: &[JobStatus] = &[JobStatus::Finished, JobStatus::Failed, JobStatus::Cancelled];

/// `daemonstatus.json`: the number of jobs of all projects, or, as far as they are listed, of one.
pub(super) async fn daemon_status(State(api): State<Arc<Api>>, mut sent: Parameters) -> Answer {
    let (pending, running, finished) = match sent.optional::<ProjectName>("project")? {
        None => {
            let counts = api.backend.jobs.counts().await?;
            (counts.pending, counts.running, counts.ended)
        }
        project => (
            api.waitlisted(&project).await?.len() as u64,
            api.jobs_of(&project, &[JobStatus::Running]).await?.len() as u64,
            api.jobs_of(&project, ENDED).await?.len() as u64,
        ),
    };
    Done::with(json!({ "pending": pending, "running": running, "finished": finished }))
}

/// `schedule.json`: every parameter that Scrapyd does not define is an argument of the spider.
pub(super) async fn schedule(State(api): State<Arc<Api>>, mut sent: Parameters) -> Answer {
    let id = sent.job("jobid")?.unwrap_or_else(|| CrawlId::generate(UnixMs::now()));
    let (project, spider): (ProjectName, SpiderName) = (sent.required("project")?, sent.required("spider")?);
    let mut new = NewJob { project, ..NewJob::new(id, spider) };
    new.version = sent.optional("_version")?;
    new.priority = sent.optional("priority")?.unwrap_or_default();
    let mut others = BTreeMap::new();
    for setting in sent.all("setting") {
        set(&mut new, &mut others, &setting)?;
    }
    let arguments = sent.rest().into_iter().map(|(name, value)| {
        let name = name.parse().map_err(Refusal::new)?;
        Ok(Argument { name, value: value.parse().map_err(Refusal::new)? })
    });
    let mut arguments = arguments.collect::<Result<Vec<_>, Refusal>>()?;
    if !others.is_empty() {
        let given = Arguments::new(arguments.clone()).map_err(Refusal::new)?;
        let reading = api.reading(&new, &given).await.map_err(unrunnable)?;
        if others.contains_key(PAGE_COUNT) {
            // Scrapy counts pages alone.
            let tasks = reading.as_ref().map_or(0, |reading| reading.spider.start.tasks.len() as u64);
            new.settings.max_pages = new.settings.max_pages.map(|pages| pages.saturating_add(tasks));
        }
        if reading.is_some_and(|reading| reading.arguments.contains_key(SETTINGS)) {
            let name = SETTINGS.parse().map_err(Refusal::new)?;
            let value = json!(others).to_string().parse().map_err(Refusal::new)?;
            arguments.push(Argument { name, value });
        } else {
            others.remove(PAGE_COUNT);
            new.ignored =
                others.into_keys().take(MAX_IGNORED).map(|name| printable(&name, MAX_NAME)).collect();
        }
    }
    new.arguments = Arguments::new(arguments).map_err(Refusal::new)?;
    new.check().map_err(Refusal::new)?;
    api.check(&new).await.map_err(unrunnable)?;
    let id = match api.backend.jobs.submit(&new).await? {
        Submitted::New => new.id,
        Submitted::Known(id) => id,
    };
    let mut answer = json!({ "jobid": id });
    if !new.ignored.is_empty() {
        answer["ignored_settings"] = json!(new.ignored);
    }
    Done::with(answer)
}

fn unrunnable(wrong: Unrunnable) -> Refusal {
    match wrong {
        Unrunnable::Port(error) => Refusal::from(error),
        wrong => Refusal::new(wrong),
    }
}

/// Applies a setting to the job if a job can override it; Scrapy's name for one of them differs. All of Scrapy's go to
/// `others`.
fn set(new: &mut NewJob, others: &mut BTreeMap<String, String>, setting: &str) -> Result<(), Refusal> {
    let wrong = || Refusal::new(format_args!("setting: `{setting}` is not NAME=VALUE"));
    let (name, value) = setting.split_once('=').ok_or_else(wrong)?;
    let known = if name == PAGE_COUNT { "max_pages" } else { name };
    let is_known = match new.settings.set(known, value) {
        Err(InvalidOverride::Name { .. }) => false,
        set => set.map(|()| true).map_err(|error| Refusal::new(format_args!("setting: {error}")))?,
    };
    if !is_known || name == PAGE_COUNT {
        others.insert(name.to_owned(), value.to_owned());
    }
    Ok(())
}

/// `cancel.json`. The parameter `signal` has no effect.
pub(super) async fn cancel(State(api): State<Arc<Api>>, mut sent: Parameters) -> Answer {
    let (project, id): (ProjectName, CrawlId) = (sent.required("project")?, sent.required_job("job")?);
    let job = api.backend.jobs.job(&id).await?.filter(|job| job.new.project == project);
    let before = match job {
        None => None,
        Some(job) if job.status().is_over() => None,
        Some(job) => {
            let Backend { jobs, control, stats, .. } = &api.backend;
            match cancel_crawl(&job.new.crawl(), &**jobs, &**control, &**stats).await {
                // It has ended in the meantime.
                Err(error) if error.kind == ErrorKind::Stale => None,
                cancelled => cancelled.map(|_| Some(word(job.status())))?,
            }
        }
    };
    Done::with(json!({ "prevstate": before }))
}

/// `status.json`: the state of one job.
pub(super) async fn status(State(api): State<Arc<Api>>, mut sent: Parameters) -> Answer {
    let (id, project): (CrawlId, Option<ProjectName>) =
        (sent.required_job("job")?, sent.optional("project")?);
    let job = api.backend.jobs.job(&id).await?;
    let job = job.filter(|job| project.is_none_or(|project| project == job.new.project));
    Done::with(json!({ "currstate": job.map_or("unknown", |job| word(job.status())) }))
}

/// `listjobs.json`: pending jobs in the order of the queue, the others by the time of submission.
pub(super) async fn list_jobs(State(api): State<Arc<Api>>, mut sent: Parameters) -> Answer {
    let project: Option<ProjectName> = sent.optional("project")?;
    let pending = api.waitlisted(&project).await?;
    let running = api.jobs_of(&project, &[JobStatus::Running]).await?;
    let finished = api.jobs_of(&project, ENDED).await?;
    let all = |jobs: Vec<Job>, shown: fn(&Job) -> Value| jobs.iter().map(shown).collect::<Vec<_>>();
    Done::with(json!({
        "pending": all(pending, as_pending),
        "running": all(running, as_running),
        "finished": all(finished, as_finished),
    }))
}

/// Returns Scrapyd's name for a job's state; it has only one for jobs that have ended.
fn word(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Pending => "pending",
        JobStatus::Running => "running",
        JobStatus::Finished | JobStatus::Failed | JobStatus::Cancelled => "finished",
    }
}

fn as_pending(Job { new, .. }: &Job) -> Value {
    json!({
        "id": new.id, "project": new.project, "spider": new.spider, "version": new.version,
        "settings": new.settings, "args": new.arguments, "priority": new.priority,
        "ignored_settings": new.ignored,
    })
}

/// Returns a running job in Scrapyd's format. It has no process of its own, and no file for its log or its items.
fn as_running(job: &Job) -> Value {
    let new = &job.new;
    json!({
        "id": new.id, "project": new.project, "spider": new.spider, "start_time": time(start(job)),
        "ignored_settings": new.ignored, "pid": null, "log_url": null, "items_url": null,
    })
}

fn as_finished(job: &Job) -> Value {
    let new = &job.new;
    json!({
        "id": new.id, "project": new.project, "spider": new.spider, "start_time": time(start(job)),
        "end_time": job.ended().map(time), "outcome": job.status(), "problem": job.problem().map(Problem::as_str),
        "ignored_settings": new.ignored, "log_url": null, "items_url": null,
    })
}

/// The time when a worker took the job, or, if none did, when it was submitted.
pub(super) fn start(job: &Job) -> UnixMs {
    job.run().map_or(job.asked, |run| run.started)
}

/// Formats an instant as Scrapyd does: `2012-09-12 10:14:03.594664`.
pub(super) fn time(at: UnixMs) -> String {
    format!("{}000", at.to_string().replace('T', " ").trim_end_matches('Z'))
}

impl Api {
    /// Checks a job as Scrapyd does: its spider must be deployed, or, in the default project, be available here or need
    /// no file.
    async fn check(&self, new: &NewJob) -> Result<(), Unrunnable> {
        let Backend { spider_store, settings, .. } = &self.backend;
        let is_default = new.project == ProjectName::default();
        match find(&**spider_store, new, settings).await? {
            Found::Deployed(text) => check_arguments(new, &text, settings),
            Found::Here(text) if is_default => check_arguments(new, &text, settings),
            Found::Nowhere if is_default && new.spider == SpiderName::default() => Ok(()),
            Found::Here(_) | Found::Nowhere => Err(missing(&**spider_store, new).await?),
        }
    }

    /// Returns what the file of a job's spider says with these arguments, if it is known here.
    async fn reading(&self, new: &NewJob, given: &Arguments) -> Result<Option<Reading>, Unrunnable> {
        let Backend { spider_store, settings, .. } = &self.backend;
        Ok(match find(&**spider_store, new, settings).await? {
            Found::Deployed(text) | Found::Here(text) => {
                let text = with_arguments(&text, given).unwrap_or(text);
                Some(Folder::new(settings).reading(&new.spider, &text))
            }
            Found::Nowhere => None,
        })
    }

    /// Returns the pending jobs of a project, or of all projects, in the order of the queue.
    pub(super) async fn waitlisted(&self, project: &Option<ProjectName>) -> Result<Vec<Job>, Refusal> {
        let mut line = self.backend.jobs.queued(MAX_LISTED).await?;
        line.retain(|job| project.as_ref().is_none_or(|project| *project == job.new.project));
        Ok(line)
    }

    /// Returns the last jobs of a project, or of all projects, with one of these states, in the order of submission.
    pub(super) async fn jobs_of(
        &self,
        project: &Option<ProjectName>,
        statuses: &[JobStatus],
    ) -> Result<Vec<Job>, Refusal> {
        let mut jobs = Vec::new();
        for status in statuses {
            let filter = JobFilter { project: project.clone(), status: Some(*status), spider: None };
            jobs.extend(self.backend.jobs.list(&filter, JobPage { before: None, max: MAX_LISTED }).await?);
        }
        jobs.sort_by_key(|job| job.number);
        let excess = jobs.len().saturating_sub(MAX_LISTED);
        Ok(jobs.split_off(excess))
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

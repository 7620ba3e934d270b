//! Submits the crawls of spiders' schedules when they are due. Any worker does this for the deployed spiders
//! and for the spiders whose files it has. The job for an instant has the same id in every worker, so it is
//! submitted once.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tracing::{info, warn};
use trawl_common::jobs::{JobStatus, NewJob};
use trawl_common::names::{CrawlId, SpiderRef};
use trawl_common::ports::{JobFilter, JobPage, Result, ScheduleState, Submitted};
use trawl_common::schedule::{Due, Overlap, Schedule};
use trawl_common::time::UnixMs;
use trawl_common::timetable::Timetable;

use crate::Runner;

/// Interval at which to look for due schedules.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Looks for due schedules until the task is cancelled.
pub(crate) async fn run(runner: Arc<Runner>) {
    let mut timetable = Timetable::default();
    loop {
        let read = timetable.read_again(&*runner.ports.spider_store, &runner.settings).await;
        // If the deployed spiders cannot be read, one of them may replace a local file.
        let may_look = read.as_ref().map_or_else(|error| !error.is_temporary(), |()| true);
        runner.noted("reading what is deployed", read);
        if may_look {
            runner.noted("looking at schedules", look(&runner, &timetable, UnixMs::now()).await);
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Submits the crawls that are due at `now`. A schedule seen for the first time starts at that instant.
async fn look(runner: &Runner, timetable: &Timetable, now: UnixMs) -> Result<()> {
    if timetable.schedules().next().is_none() {
        return Ok(());
    }
    let states = runner.ports.schedules.list().await?;
    for (spider, schedule) in timetable.schedules() {
        let done = match states.get(&spider) {
            None => runner.ports.schedules.note(&spider, now).await,
            Some(ScheduleState::Paused) => Ok(()),
            Some(ScheduleState::Done(until)) => match schedule.due(*until, now) {
                Some(due) => settle(runner, &spider, schedule, due).await,
                None => Ok(()),
            },
        };
        runner.noted(&format!("the schedule of {spider}"), done);
    }
    Ok(())
}

/// Submits or skips the due crawl, then records that. If the worker dies in between, the instant is still
/// due, and submitting it again finds the job's id known.
async fn settle(runner: &Runner, spider: &SpiderRef, schedule: &Schedule, due: Due) -> Result<()> {
    let instant = match due {
        Due::Run(instant) => {
            ask(runner, spider, schedule, instant).await?;
            instant
        }
        Due::Missed(instant) => {
            warn!(%spider, %instant, "a scheduled crawl is left out: nobody was there in time");
            instant
        }
    };
    runner.ports.schedules.note(spider, instant).await
}

async fn ask(runner: &Runner, spider: &SpiderRef, schedule: &Schedule, instant: UnixMs) -> Result<()> {
    let job = NewJob::scheduled(spider, instant);
    if schedule.overlap == Overlap::Skip && is_busy(runner, &job).await? {
        info!(%spider, %instant, "a scheduled crawl is left out: the spider's last one is not over");
        return Ok(());
    }
    if runner.ports.jobs.submit(&job).await? == Submitted::New {
        info!(%spider, %instant, job = %job.id, "a scheduled crawl is asked for");
    }
    Ok(())
}

/// Whether another crawl of the spider of `job` is pending or running. Spiders of one name share their seen
/// URLs, and so take turns, even across projects.
async fn is_busy(runner: &Runner, job: &NewJob) -> Result<bool> {
    for status in [JobStatus::Pending, JobStatus::Running] {
        let filter = JobFilter { status: Some(status), spider: Some(job.spider.clone()), project: None };
        let jobs = runner.ports.jobs.list(&filter, JobPage { before: None, max: 2 }).await?;
        if jobs.iter().any(|other| other.new.id != job.id) {
            return Ok(true);
        }
    }
    let crawls = runner.ports.stats.open_crawls(&job.spider).await?;
    let is_another = |id: &CrawlId| *id != job.id && !id.is_adhoc();
    Ok(crawls.iter().any(|stats| is_another(&stats.crawl)))
}

#[cfg(test)]
mod tests;

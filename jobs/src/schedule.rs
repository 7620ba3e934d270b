//! Asks for the crawls of spiders' schedules when they are due. Any worker does it for the spiders that are deployed, and for those whose
//! files it has. The job of an instant has the same id in every worker, so that it is submitted once.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tracing::{info, warn};
use trawl_common::jobs::{JobStatus, NewJob};
use trawl_common::names::{CrawlId, SpiderRef};
use trawl_common::ports::{JobFilter, JobPage, Result, ScheduleState, Submitted};
use trawl_common::schedule::{self, Due, Overlap, Schedule, Timetable};
use trawl_common::time::UnixMs;

use crate::Runner;

/// How often to look what is due.
const LOOK: Duration = Duration::from_secs(1);

/// Looks again and again.
pub(crate) async fn run(runner: Arc<Runner>) {
    let mut timetable = Timetable::default();
    loop {
        let read = timetable.read_again(&*runner.ports.spider_store, &runner.settings).await;
        // What cannot be read now may be deployed in place of a file that is here.
        let may_look = read.as_ref().map_or_else(|error| !error.is_temporary(), |()| true);
        runner.noted("reading what is deployed", read);
        if may_look {
            runner.noted("looking at schedules", look(&runner, &timetable, UnixMs::now()).await);
        }
        sleep(LOOK).await;
    }
}

/// Asks for what is due at `now`. A schedule that is seen for the first time begins then.
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

/// Submits the crawl that is due, or leaves it out; then notes that. A worker that dies in between leaves an instant that is due, and its
/// job is known by then.
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
    let job = schedule::job(spider, instant);
    if schedule.overlap == Overlap::Skip && is_busy(runner, &job).await? {
        info!(%spider, %instant, "a scheduled crawl is left out: the spider's last one is not over");
        return Ok(());
    }
    if runner.ports.jobs.submit(&job).await? == Submitted::New {
        info!(%spider, %instant, job = %job.id, "a scheduled crawl is asked for");
    }
    Ok(())
}

/// Whether another crawl of the spider of `job` is not over, or asked for. Spiders of one name share what they have seen, and so their
/// turn, whatever their projects are.
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

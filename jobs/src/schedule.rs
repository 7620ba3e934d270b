//! Asks for the crawls of spiders' schedules when they are due. Any worker does it for the spiders whose files it has. The job of an
//! instant has the same id whoever asks for it, so that all together ask once.

mod timetable;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tracing::{info, warn};
use trawl_common::jobs::JobStatus;
use trawl_common::names::{CrawlId, SpiderName};
use trawl_common::ports::{JobFilter, JobPage, Result, ScheduleState, Submitted};
use trawl_common::schedule::{self, Due, Overlap, Schedule};
use trawl_common::time::UnixMs;

use self::timetable::Timetable;
use crate::Runner;

/// How often to look what is due.
const LOOK: Duration = Duration::from_secs(1);

/// Looks again and again.
pub(crate) async fn run(runner: Arc<Runner>) {
    let mut timetable = Timetable::default();
    loop {
        timetable = timetable.read_again(&runner).await;
        runner.noted("looking at schedules", look(&runner, &timetable, UnixMs::now()).await);
        sleep(LOOK).await;
    }
}

/// Asks for what is due at `now`. A schedule that is seen for the first time begins then.
async fn look(runner: &Runner, timetable: &Timetable, now: UnixMs) -> Result<()> {
    if timetable.is_empty() {
        return Ok(());
    }
    let states = runner.ports.schedules.list().await?;
    for (spider, schedule) in timetable.schedules() {
        let done = match states.get(spider) {
            None => runner.ports.schedules.note(spider, now).await,
            Some(ScheduleState::Paused) => Ok(()),
            Some(ScheduleState::Done(until)) => match schedule.due(*until, now) {
                Some(due) => settle(runner, spider, schedule, due).await,
                None => Ok(()),
            },
        };
        runner.noted(&format!("the schedule of {spider}"), done);
    }
    Ok(())
}

/// Asks for the crawl that is due, or leaves it out; then notes that. Whoever dies in between leaves an instant that is due, and its
/// job is known by then.
async fn settle(runner: &Runner, spider: &SpiderName, schedule: &Schedule, due: Due) -> Result<()> {
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

async fn ask(runner: &Runner, spider: &SpiderName, schedule: &Schedule, instant: UnixMs) -> Result<()> {
    let job = schedule::job(spider, instant);
    if schedule.overlap == Overlap::Skip && is_busy(runner, spider, &job.id).await? {
        info!(%spider, %instant, "a scheduled crawl is left out: the spider's last one is not over");
        return Ok(());
    }
    if runner.ports.jobs.submit(&job).await? == Submitted::New {
        info!(%spider, %instant, job = %job.id, "a scheduled crawl is asked for");
    }
    Ok(())
}

/// Whether a crawl of the spider is not over, or asked for, but for `job`.
async fn is_busy(runner: &Runner, spider: &SpiderName, job: &CrawlId) -> Result<bool> {
    for status in [JobStatus::Pending, JobStatus::Running] {
        let filter = JobFilter { status: Some(status), spider: Some(spider.clone()), project: None };
        let jobs = runner.ports.jobs.list(&filter, JobPage { before: None, max: 2 }).await?;
        if jobs.iter().any(|other| other.new.id != *job) {
            return Ok(true);
        }
    }
    let crawls = runner.ports.stats.crawls().await?;
    let is_another = |id: &CrawlId| id != job && !id.is_adhoc();
    Ok(crawls
        .iter()
        .any(|stats| stats.spider == *spider && is_another(&stats.crawl) && !stats.status.is_over()))
}

#[cfg(test)]
mod tests;

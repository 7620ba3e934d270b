//! Ends jobs with their crawls, and forgets those that ended long ago. Any worker does this for all jobs.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::info;
use trawl_common::explain;
use trawl_common::frontier::crawl::{CrawlState, CrawlStats};
use trawl_common::health::Health;
use trawl_common::jobs::{Job, JobOutcome, JobState, Problem};
use trawl_common::ports::{ErrorKind, Opening, Result, SourcesRead, Terms};

use crate::history::Kept;
use crate::sources::{self, Unfeedable};
use crate::{POLL_INTERVAL, Runner};

/// Maximum number of jobs that are checked at a time.
const MAX_JOBS: usize = 100;

/// Interval at which old jobs are forgotten.
const FORGET_INTERVAL: Duration = Duration::from_secs(60);

/// Minimum time that a job that is over is kept.
const RETENTION: Duration = Duration::from_secs(24 * 3600);

/// Checks repeatedly.
pub(crate) async fn run(runner: Arc<Runner>) {
    let (mut forgotten, mut kept) = (None, Kept::default());
    loop {
        runner.noted("ending jobs", look(&runner).await);
        if forgotten.is_none_or(|last: Instant| last.elapsed() >= FORGET_INTERVAL) {
            forgotten = Some(Instant::now());
            if runner.noted("keeping jobs in the history", kept.keep(&runner).await).is_some() {
                let keep = runner.settings.keep.crawls;
                runner.noted("forgetting old jobs", runner.ports.jobs.forget(keep, RETENTION).await);
            }
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Ends the jobs whose crawls are over. Jobs that another worker has just checked are left to it.
async fn look(runner: &Runner) -> Result<()> {
    for job in runner.ports.jobs.look_after(MAX_JOBS, POLL_INTERVAL / 2).await? {
        if let Some(outcome) = outcome_of(runner, &job).await? {
            if let JobOutcome::Failed(problem) = &outcome {
                runner.announce_failure(&job.new, problem.as_str()).await?;
            }
            info!(job = %job.new.id, spider = %job.new.spider, ?outcome, "a job has ended");
            runner.ports.jobs.end(&job.new.id, &outcome).await?;
        }
    }
    Ok(())
}

/// Returns the outcome of the job, if it has ended.
async fn outcome_of(runner: &Runner, job: &Job) -> Result<Option<JobOutcome>> {
    let Some(stats) = runner.ports.stats.crawl_stats(&job.new.id).await? else {
        return reopen(runner, job).await;
    };
    let is_cancelled = matches!(job.state, JobState::Fed { is_cancelled: true, .. });
    Ok(match stats.status {
        CrawlState::Finished => Some(JobOutcome::Finished { problem: problem_of(job, &stats) }),
        CrawlState::Cancelled => Some(JobOutcome::Cancelled),
        _ if is_cancelled => {
            runner.cancel_crawl(&job.new.crawl()).await?;
            Some(JobOutcome::Cancelled)
        }
        CrawlState::Pending | CrawlState::Running | CrawlState::Paused => None,
    })
}

/// Returns what went wrong with a job whose crawl has finished: its sources could not be read, or it yields less than
/// its spider expects.
fn problem_of(job: &Job, stats: &CrawlStats) -> Option<Problem> {
    let problems: Vec<String> =
        job.problem().map(Problem::to_string).into_iter().chain(explain::unmet(stats)).collect();
    (!problems.is_empty()).then(|| Problem::new(problems.join("; ")))
}

/// Opens the crawl of a job once more, as the store knows the job and not the crawl: it was emptied, and has learnt
/// first of jobs. So what the spider's file says is kept with the crawl again, for workers that have no such file.
/// Returns the job's end if that cannot be.
async fn reopen(runner: &Runner, job: &Job) -> Result<Option<JobOutcome>> {
    let run = match sources::of(runner, &job.new).await {
        Ok(run) => run,
        Err(Unfeedable::Port(error)) => return Err(error),
        Err(unfeedable) => {
            return Ok(Some(JobOutcome::failed(format_args!("its crawl is gone, and {unfeedable}"))));
        }
    };
    let opening = Opening {
        crawl: job.new.crawl(),
        terms: Terms::new(&run.spider),
        reads: Some(run.reads()),
        judging: Some(run.spider.judging()),
        text: run.text,
        is_new: false,
        lease: runner.lease(),
    };
    match runner.ports.engine.open(opening, Arc::new(Health::fail_fast())).await {
        // Its sources have been read.
        Ok(session) => session.close_read(Some(SourcesRead::default())).await?,
        // It is over, as the store knows by now, or another crawl of the spider is being fed, and this one is checked
        // again.
        Err(error) if matches!(error.kind, ErrorKind::Stale | ErrorKind::Busy) => {}
        Err(error) => return Err(error),
    }
    Ok(None)
}

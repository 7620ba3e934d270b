//! Feeds one job: reads its sources into its crawl, as a run of the producer does, under the job's lease.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use trawl_common::health::Health;
use trawl_common::jobs::{Hold, Job, JobOutcome, JobStatus, Problem};
use trawl_common::names::{CrawlId, CrawlRef};
use trawl_common::ports::{self, ErrorKind, Result};
use trawl_producer::{Progress, Report, RunError};

use crate::Runner;
use crate::sources::{self, Unfeedable};

/// Delay before a job is taken again whose spider is busy or whose servers are unavailable.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// The result of feeding a job.
#[derive(Debug)]
enum Fed {
    /// All sources were read, except those that the problem names.
    Wholly(Option<Problem>),
    /// The crawl was over already.
    Before,
    /// The job cannot be fed now; to be tried again after this delay.
    NotNow(Duration),
    /// The job can never be fed, for this reason.
    Never(String),
}

/// Feeds a job and reports the result.
///
/// 1. Reads the sources, extending the lease meanwhile. Stops if the lease is lost or the job is cancelled.
/// 2. Marks the job as fed, puts it back, or ends it as failed.
/// 3. Cancels the crawl of a job that was cancelled meanwhile: it may have been opened since.
pub(crate) async fn run(runner: &Runner, job: Job, stop: &CancellationToken) {
    let crawl = job.new.crawl();
    info!(job = %crawl.id, spider = %crawl.spider, priority = %job.new.priority, "feeding a job");
    let stop_feeding = stop.child_token();
    let fed = tokio::select! {
        fed = feed(runner, &job, &crawl, &stop_feeding) => fed,
        never = keep(runner, &crawl.id, &stop_feeding) => match never {},
    };
    // While a server is unavailable the lease may lapse; another worker then takes the job, and this one
    // reports nothing.
    let health = Health::until(stop.clone());
    let settled = health.retry("settling a job", || settle(runner, &job, &fed)).await;
    if let Err(error) = settled {
        warn!(job = %crawl.id, %error, "what came of a job could not be written: it will be taken again");
    }
}

/// Extends the lease until this future is dropped; stops the feeding once the job is lost or cancelled.
async fn keep(runner: &Runner, job: &CrawlId, stop_feeding: &CancellationToken) -> std::convert::Infallible {
    loop {
        sleep(runner.lease() / 4).await;
        let holds = runner.ports.jobs.extend(&runner.id, std::slice::from_ref(job), runner.lease()).await;
        // A failed call is repeated: the lease outlives several of them.
        if holds.is_ok_and(|holds| holds != [Hold::Kept]) {
            stop_feeding.cancel();
        }
    }
}

async fn feed(runner: &Runner, job: &Job, crawl: &CrawlRef, stop: &CancellationToken) -> Fed {
    let run = match sources::of(runner, &job.new).await {
        Ok(run) => run,
        Err(Unfeedable::Port(error)) => return of_error(&error),
        Err(unfeedable) => return Fed::Never(unfeedable.to_string()),
    };
    let (settings, progress) = (Arc::clone(&runner.settings), Arc::<Progress>::default());
    match trawl_producer::run(&runner.ports, settings, run, crawl, progress, stop).await {
        Ok(report) if report.stopped => Fed::NotNow(Duration::ZERO),
        Ok(report) => of_report(&report),
        Err(RunError::Port(error)) => of_error(&error),
        Err(error) => Fed::Never(error.to_string()),
    }
}

fn of_error(error: &ports::Error) -> Fed {
    match error.kind {
        ErrorKind::Busy | ErrorKind::Unavailable | ErrorKind::Full => Fed::NotNow(RETRY_DELAY),
        ErrorKind::Stale => Fed::Before,
        ErrorKind::Refused | ErrorKind::Corrupt => Fed::Never(error.to_string()),
    }
}

/// Returns `Never` if there were problems and nothing at all was read.
fn of_report(report: &Report) -> Fed {
    let problems = report.problems.join("; ");
    match (report.problems.is_empty(), report.counters.found) {
        (true, _) => Fed::Wholly(None),
        (false, 0) => Fed::Never(problems),
        (false, _) => Fed::Wholly(Some(Problem::new(problems))),
    }
}

async fn settle(runner: &Runner, job: &Job, fed: &Fed) -> Result<()> {
    let (jobs, id, crawl) = (&runner.ports.jobs, &job.new.id, &job.new.crawl());
    match fed {
        Fed::Wholly(problem) => mark_fed(runner, crawl, problem.clone()).await?,
        Fed::Before => mark_fed(runner, crawl, None).await?,
        // A cancelled job is not put back: it waits for its end.
        Fed::NotNow(wait) => jobs.put_back(&runner.id, id, *wait).await?,
        Fed::Never(error) => {
            warn!(job = %id, error, "a job has failed");
            let hold = jobs.extend(&runner.id, std::slice::from_ref(id), runner.lease()).await?;
            if hold != [Hold::Lost] {
                runner.cancel_crawl(crawl).await?;
                if hold == [Hold::Kept] {
                    runner.announce_failure(&job.new, error).await?;
                }
                jobs.end(id, &JobOutcome::failed(error)).await?;
            }
        }
    }
    // The job may have been cancelled before there was a crawl to cancel.
    let status = jobs.job(id).await?.map(|job| job.status());
    if status == Some(JobStatus::Cancelled) {
        runner.cancel_crawl(crawl).await?;
    }
    Ok(())
}

/// Marks a job as fed. If it was cancelled meanwhile, cancels its crawl, which may not have existed at the
/// time.
async fn mark_fed(runner: &Runner, crawl: &CrawlRef, problem: Option<Problem>) -> Result<()> {
    match runner.ports.jobs.fed(&runner.id, &crawl.id, problem).await? {
        Hold::Cancelled => runner.cancel_crawl(crawl).await,
        Hold::Kept | Hold::Lost => Ok(()),
    }
}

impl Runner {
    /// Cancels a crawl if it is open.
    pub(crate) async fn cancel_crawl(&self, crawl: &CrawlRef) -> Result<()> {
        match self.ports.control.cancel(crawl).await {
            Err(error) if error.kind == ErrorKind::Stale => Ok(()),
            cancelled => cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use trawl_backends::embedded::Embedded;
    use trawl_backends::sinks::Sinks;
    use trawl_common::frontier::crawl::CrawlState;
    use trawl_common::jobs::NewJob;
    use trawl_common::names::SpiderName;
    use trawl_common::request::NewRequest;
    use trawl_common::settings::Settings;
    use trawl_common::spider::folder::Folder;

    use super::*;

    #[tokio::test]
    async fn the_crawl_of_a_job_that_is_cancelled_while_it_is_fed_is_cancelled_when_it_is_open() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (store, settings) = (Embedded::in_memory().unwrap(), Settings::default());
        let (id, folder): (trawl_common::names::WorkerId, _) =
            ("one".parse().unwrap(), Folder::new(&settings));
        let ports = store.ports(Arc::new(Sinks::new(id.clone(), Vec::new())));
        let runner = Runner { ports, settings: Arc::new(settings), folder, id, health: Health::default() };
        let new = NewJob::new("c1".parse().unwrap(), SpiderName::default());
        let new = NewJob { urls: vec![NewRequest::get("http://a.example/").into()], ..new };
        let jobs = Arc::clone(&runner.ports.jobs);
        jobs.submit(&new).await.unwrap();
        let job = jobs.take(&runner.id, runner.lease()).await.unwrap().unwrap();
        assert_eq!(jobs.cancel(&new.id).await.unwrap(), Some(JobStatus::Running));
        run(&runner, job, &CancellationToken::new()).await;
        let stats = runner.ports.stats.crawl_stats(&new.id).await.unwrap().unwrap();
        assert_eq!((stats.status, stats.counts.cancelled), (CrawlState::Cancelled, 1));
    }
}

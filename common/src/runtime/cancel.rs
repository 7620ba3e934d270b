//! Cancelling a crawl that may belong to a job, and tasks of one.

use crate::frontier::TaskKey;
use crate::frontier::crawl::CrawlState;
use crate::jobs::JobStatus;
use crate::names::CrawlRef;
use crate::ports::{Control, ErrorKind, Jobs, Result, Stats};

/// Cancels a crawl, and its job if it has one. Returns whether it had not begun. Fails with `Stale` if the crawl
/// is finished, or if there is neither.
pub async fn cancel_crawl(
    crawl: &CrawlRef,
    jobs: &dyn Jobs,
    control: &dyn Control,
    stats: &dyn Stats,
) -> Result<bool> {
    // First the job: otherwise its feeder would begin the crawl anew.
    let was = jobs.cancel(&crawl.id).await?;
    let stale = match control.cancel(crawl).await {
        Err(error) if error.kind == ErrorKind::Stale => error,
        cancelled => return cancelled.map(|()| false),
    };
    let state = stats.crawl_stats(&crawl.id).await?.map(|stats| stats.status);
    match (was, state) {
        // The job's feeder cancels the crawl once it exists.
        (Some(JobStatus::Pending | JobStatus::Running | JobStatus::Cancelled), None) => Ok(true),
        (_, None | Some(CrawlState::Finished)) => Err(stale),
        // It began between the two calls.
        (_, Some(_)) => control.cancel(crawl).await.map(|()| false),
    }
}

/// Cancels tasks of a crawl that have no final state. Returns their number when that is as durable as it can be.
pub async fn cancel_tasks(crawl: &CrawlRef, keys: &[TaskKey], control: &dyn Control) -> Result<u64> {
    let cancelled = control.cancel_tasks(crawl, keys).await?;
    if cancelled > 0 {
        control.await_durable(crawl).await?;
    }
    Ok(cancelled)
}

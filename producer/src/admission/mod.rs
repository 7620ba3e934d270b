//! Admits findings into the queue, a few bundles at once.

pub(crate) mod backlog;
mod failed_before;
mod recrawl_filter;
pub(crate) mod round_robin;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::{TryStreamExt, stream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::health::Health;
use trawl_common::metrics;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{CrawlSession, NewWork, Ports, Result};
use trawl_common::time::UnixMs;

use crate::admission::backlog::Backlog;
use crate::admission::failed_before::FailedBefore;
use crate::admission::recrawl_filter::RecrawlFilter;
use crate::finding::{Candidate, Finding};
use crate::report::Progress;

/// The number of bundles in progress at once: while one is confirmed the next is admitted.
const CONCURRENCY: usize = 4;

/// Admits every bundle received, when the backlog allows it, until the sender is gone or `stop` is cancelled.
pub(crate) async fn run(
    ports: &Ports,
    health: &Health,
    session: &dyn CrawlSession,
    findings: mpsc::Receiver<Vec<Finding>>,
    backlog: Backlog,
    progress: &Progress,
    stop: &CancellationToken,
) -> Result<()> {
    let (crawl, recrawl) = (session.crawl(), session.terms().recrawl);
    let due = RecrawlFilter::new(&*ports.pages, health, &crawl.spider, recrawl);
    let failed = FailedBefore::new(ports, health, crawl, recrawl.is_never());
    let on_their_way = backlog.on_their_way();
    let intake = (findings, backlog, stop.clone());
    let bundles = stream::try_unfold(intake, |(mut findings, mut backlog, stop)| async move {
        let Some(bundle) = findings.recv().await else { return Ok(None) };
        let passed = stop.run_until_cancelled(backlog.pass(&bundle)).await.transpose()?;
        Ok(passed.map(|()| (bundle, (findings, backlog, stop))))
    });
    bundles
        .map_ok(|bundle| admit(session, &due, &failed, bundle, &on_their_way, progress))
        .try_buffered(CONCURRENCY)
        .try_collect()
        .await
}

/// Admits one bundle.
///
/// 1. Writes dead letters for entries that are not URLs.
/// 2. Leaves out pages that need not be fetched again.
/// 3. Admits the rest: from then on they cannot be lost.
/// 4. Counts those that were seen because they failed before.
async fn admit(
    session: &dyn CrawlSession,
    due: &RecrawlFilter<'_>,
    failed: &FailedBefore<'_>,
    bundle: Vec<Finding>,
    on_their_way: &AtomicU64,
    progress: &Progress,
) -> Result<()> {
    let count = bundle.len() as u64;
    let (found, dead_letters) = part(bundle, session.crawl());
    if !dead_letters.is_empty() {
        session.refuse(&dead_letters).await?;
        progress.invalid(dead_letters.len());
    }
    progress.found(found.len());
    let (pages, ttls) = begin(due.sift(found, progress).await?);
    let new = if pages.is_empty() { Vec::new() } else { session.admit(&pages).await? };
    on_their_way.fetch_sub(count, Ordering::Relaxed);
    let seen: Vec<&NewWork> = (0..new.len()).filter(|at| !new[*at]).map(|at| &pages[at]).collect();
    progress.failed_before(failed.count(&seen).await?);
    let new: Vec<usize> = (0..new.len()).filter(|at| new[*at]).collect();
    progress.waiting(new.iter().filter_map(|&at| Some((pages[at].work.page()?, ttls[at]))));
    metrics::urls_admitted(new.len() as u64);
    progress.new_urls(new.len());
    Ok(())
}

/// Separates the valid candidates from the invalid entries, which become dead letters.
fn part(bundle: Vec<Finding>, crawl: &CrawlRef) -> (Vec<Candidate>, Vec<DeadLetter>) {
    let mut found = Vec::with_capacity(bundle.len());
    let mut dead_letters = Vec::new();
    for finding in bundle {
        match finding {
            Finding::Page(candidate) => found.push(candidate),
            Finding::Invalid { text, reason } => {
                dead_letters.push(DeadLetter::invalid(text, crawl.clone(), reason, None));
            }
        }
    }
    (found, dead_letters)
}

/// Sets the deadlines of pages, counted from now; also returns the time that each may wait.
fn begin(found: Vec<Candidate>) -> (Vec<NewWork>, Vec<Option<Duration>>) {
    let now = UnixMs::now();
    let begun = found.into_iter().map(|Candidate { page, ttl, .. }| {
        let deadline = ttl.map(|ttl| now.plus(ttl));
        (NewWork { deadline, ..page }, ttl)
    });
    begun.unzip()
}

//! From findings to URLs in the queue: admit, publish, confirm, a few bundles at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::{TryStreamExt, stream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use trawl_common::health::Health;
use trawl_common::letter::DeadLetter;
use trawl_common::message::Message;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{NewUrl, Ports, Result};
use trawl_common::time::UnixMs;
use trawl_common::url::CanonicalUrl;

use crate::backlog::Backlog;
use crate::due::Due;
use crate::lease::Lease;
use crate::report::Progress;
use crate::{Candidate, Finding};

/// Bundles on their way at once: while one is confirmed the next is admitted.
const AT_ONCE: usize = 4;

/// Admits every bundle that comes, as there is room in the backlog, until the sender is gone or `stop` is cancelled.
pub(crate) async fn run(
    ports: &Ports,
    health: &Health,
    lease: &Lease,
    findings: mpsc::Receiver<Vec<Finding>>,
    backlog: Backlog,
    progress: &Progress,
    stop: &CancellationToken,
) -> Result<()> {
    let due = Due::new(&*ports.pages, health, &lease.crawl().spider, lease.terms().recrawl);
    let on_their_way = backlog.on_their_way();
    let intake = (findings, backlog, stop.clone());
    let bundles = stream::try_unfold(intake, |(mut findings, mut backlog, stop)| async move {
        let Some(bundle) = findings.recv().await else { return Ok(None) };
        let passed = stop.run_until_cancelled(backlog.pass(bundle.len() as u64)).await.transpose()?;
        Ok(passed.map(|()| (bundle, (findings, backlog, stop))))
    });
    bundles
        .map_ok(|bundle| admit(ports, health, lease, &due, bundle, &on_their_way, progress))
        .try_buffered(AT_ONCE)
        .try_collect()
        .await
}

/// 1. Writes dead letters for what is no URL.
/// 2. Leaves out what need not be fetched again.
/// 3. Admits the rest: from here on nothing can lose them.
/// 4. Publishes the new ones.
/// 5. Confirms them.
///
/// A crash after the third step leaves them in the outbox, which the workers sweep.
async fn admit(
    ports: &Ports,
    health: &Health,
    lease: &Lease,
    due: &Due<'_>,
    bundle: Vec<Finding>,
    on_their_way: &AtomicU64,
    progress: &Progress,
) -> Result<()> {
    let count = bundle.len() as u64;
    let (found, letters) = part(bundle, lease.crawl());
    if !letters.is_empty() {
        health.patiently("storing dead letters", || ports.queue.dead_letter(&letters)).await?;
        health.patiently("noting what is no URL", || ports.frontier.note_invalid(&letters)).await?;
        progress.invalid(letters.len());
    }
    progress.found(found.len());
    let (pages, ttls) = begin(due.sift(found, progress).await?);
    let new = if pages.is_empty() { Vec::new() } else { lease.admit(&pages).await? };
    on_their_way.fetch_sub(count, Ordering::Relaxed);
    let is_new = |at: &usize| new[*at];
    progress.waiting((0..pages.len()).filter(is_new).map(|at| (&pages[at].url, ttls[at])));
    let messages: Vec<Message> =
        (0..pages.len()).filter(is_new).map(|at| pages[at].message(lease.crawl())).collect();
    if messages.is_empty() {
        return Ok(());
    }
    health.patiently("publishing", || ports.queue.publish(&messages)).await?;
    progress.new_urls(messages.len());
    let urls: Vec<CanonicalUrl> = messages.into_iter().map(|message| message.url).collect();
    health.patiently("confirming", || ports.frontier.confirm(lease.crawl(), &urls)).await
}

/// The pages, and letters for what is no page.
fn part(bundle: Vec<Finding>, crawl: &CrawlRef) -> (Vec<Candidate>, Vec<DeadLetter>) {
    let mut found = Vec::with_capacity(bundle.len());
    let mut letters = Vec::new();
    for finding in bundle {
        match finding {
            Finding::Page(candidate) => found.push(candidate),
            Finding::Invalid { text, reason } => {
                letters.push(DeadLetter::invalid(text, crawl.clone(), reason, None));
            }
        }
    }
    (found, letters)
}

/// Pages whose time begins now, and how long each may wait.
fn begin(found: Vec<Candidate>) -> (Vec<NewUrl>, Vec<Option<Duration>>) {
    let now = UnixMs::now();
    let begun = found.into_iter().map(|Candidate { page, ttl, .. }| {
        let deadline = ttl.map(|ttl| now.plus(ttl));
        (NewUrl { deadline, ..page }, ttl)
    });
    begun.unzip()
}

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

use crate::Finding;
use crate::backlog::Backlog;
use crate::lease::Lease;
use crate::report::Progress;

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
    let on_their_way = backlog.on_their_way();
    let intake = (findings, backlog, stop.clone());
    let bundles = stream::try_unfold(intake, |(mut findings, mut backlog, stop)| async move {
        let Some(bundle) = findings.recv().await else { return Ok(None) };
        let passed = stop.run_until_cancelled(backlog.pass(bundle.len() as u64)).await.transpose()?;
        Ok(passed.map(|()| (bundle, (findings, backlog, stop))))
    });
    bundles
        .map_ok(|bundle| admit(ports, health, lease, bundle, &on_their_way, progress))
        .try_buffered(AT_ONCE)
        .try_collect()
        .await
}

/// 1. Writes dead letters for what is no URL.
/// 2. Admits the rest: from here on nothing can lose them.
/// 3. Publishes the new ones.
/// 4. Confirms them.
///
/// A crash after the second step leaves them in the outbox, which the workers sweep.
async fn admit(
    ports: &Ports,
    health: &Health,
    lease: &Lease,
    bundle: Vec<Finding>,
    on_their_way: &AtomicU64,
    progress: &Progress,
) -> Result<()> {
    let count = bundle.len() as u64;
    let (pages, ttls, letters) = part(bundle, lease.crawl());
    if !letters.is_empty() {
        health.patiently("storing dead letters", || ports.queue.dead_letter(&letters)).await?;
        progress.invalid(letters.len());
    }
    let new = if pages.is_empty() { Vec::new() } else { lease.admit(&pages).await? };
    on_their_way.fetch_sub(count, Ordering::Relaxed);
    progress.found(pages.len());
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

/// The pages, how long each may wait, from now on, and letters for what is no page.
fn part(bundle: Vec<Finding>, crawl: &CrawlRef) -> (Vec<NewUrl>, Vec<Option<Duration>>, Vec<DeadLetter>) {
    let now = UnixMs::now();
    let mut pages = Vec::with_capacity(bundle.len());
    let mut ttls = Vec::with_capacity(bundle.len());
    let mut letters = Vec::new();
    for finding in bundle {
        match finding {
            Finding::Page(page, ttl) => {
                pages.push(NewUrl { deadline: ttl.map(|ttl| now.plus(ttl)), ..page });
                ttls.push(ttl);
            }
            Finding::Invalid { text, reason } => {
                letters.push(DeadLetter::invalid(text, crawl.clone(), reason, None));
            }
        }
    }
    (pages, ttls, letters)
}

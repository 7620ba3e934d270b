//! From findings to URLs in the queue: admit, publish, confirm, a few bundles at once.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::mpsc;
use trawl_common::health::Health;
use trawl_common::letter::DeadLetter;
use trawl_common::message::Message;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{NewUrl, Ports, Result};
use trawl_common::url::CanonicalUrl;

use crate::Finding;
use crate::lease::Lease;
use crate::report::Progress;

/// Bundles on their way at once: while one is confirmed the next is admitted.
const AT_ONCE: usize = 4;

/// Admits every bundle that comes, until the sender is gone.
pub(crate) async fn run(
    ports: &Ports,
    health: &Health,
    lease: &Lease,
    findings: mpsc::Receiver<Vec<Finding>>,
    progress: &Arc<Progress>,
) -> Result<()> {
    let bundles = stream::unfold(findings, |mut findings| async {
        let bundle = findings.recv().await?;
        Some((bundle, findings))
    });
    bundles
        .map(|bundle| admit(ports, health, lease, bundle, progress))
        .buffered(AT_ONCE)
        .try_collect::<()>()
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
    progress: &Arc<Progress>,
) -> Result<()> {
    let (pages, ttls, letters) = part(bundle, lease.crawl());
    if !letters.is_empty() {
        health.patiently("storing dead letters", || ports.queue.dead_letter(&letters)).await?;
        progress.invalid(letters.len());
    }
    if pages.is_empty() {
        return Ok(());
    }
    let new = lease.admit(&pages).await?;
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

/// The pages, how long each may wait, and letters for what is no page.
fn part(bundle: Vec<Finding>, crawl: &CrawlRef) -> (Vec<NewUrl>, Vec<Option<Duration>>, Vec<DeadLetter>) {
    let mut pages = Vec::with_capacity(bundle.len());
    let mut ttls = Vec::with_capacity(bundle.len());
    let mut letters = Vec::new();
    for finding in bundle {
        match finding {
            Finding::Page(page, ttl) => {
                pages.push(page);
                ttls.push(ttl);
            }
            Finding::Invalid { text, reason } => {
                letters.push(DeadLetter::invalid(text, crawl.clone(), reason, None));
            }
        }
    }
    (pages, ttls, letters)
}

//! From findings to URLs in the queue: admit, publish, confirm, a few bundles at once.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::mpsc;
use trawl_common::letter::DeadLetter;
use trawl_common::message::Message;
use trawl_common::names::CrawlRef;
use trawl_common::outcome::Reason;
use trawl_common::ports::{Discovery as Lease, NewUrl, Ports, Result};
use trawl_common::time::UnixMs;
use trawl_common::url::CanonicalUrl;

use crate::Finding;
use crate::report::Progress;

/// Bundles on their way at once: while one is confirmed the next is admitted.
const AT_ONCE: usize = 4;

/// Admits every bundle that comes, until the sender is gone.
pub(crate) async fn run(
    ports: &Ports,
    lease: &Lease,
    findings: mpsc::Receiver<Vec<Finding>>,
    progress: &Arc<Progress>,
) -> Result<()> {
    let bundles = stream::unfold(findings, |mut findings| async {
        let bundle = findings.recv().await?;
        Some((bundle, findings))
    });
    bundles.map(|bundle| admit(ports, lease, bundle, progress)).buffered(AT_ONCE).try_collect::<()>().await
}

/// 1. Writes dead letters for what is no URL.
/// 2. Admits the rest: from here on nothing can lose them.
/// 3. Publishes the new ones.
/// 4. Confirms them.
///
/// A crash after the second step leaves them in the outbox, which the workers sweep.
async fn admit(ports: &Ports, lease: &Lease, bundle: Vec<Finding>, progress: &Arc<Progress>) -> Result<()> {
    let (pages, letters) = part(bundle, &lease.crawl);
    if !letters.is_empty() {
        ports.queue.dead_letter(&letters).await?;
        progress.invalid(letters.len());
    }
    if pages.is_empty() {
        return Ok(());
    }
    let new = ports.frontier.admit(lease, &pages).await?;
    progress.found(pages.len());
    let messages: Vec<Message> =
        pages.iter().zip(new).filter(|(_, new)| *new).map(|(page, _)| page.message(&lease.crawl)).collect();
    if messages.is_empty() {
        return Ok(());
    }
    ports.queue.publish(&messages).await?;
    progress.new_urls(messages.len());
    let urls: Vec<CanonicalUrl> = messages.into_iter().map(|message| message.url).collect();
    ports.frontier.confirm(&lease.crawl, &urls).await
}

fn part(bundle: Vec<Finding>, crawl: &CrawlRef) -> (Vec<NewUrl>, Vec<DeadLetter>) {
    let mut pages = Vec::with_capacity(bundle.len());
    let mut letters = Vec::new();
    for finding in bundle {
        match finding {
            Finding::Page(page, _) => pages.push(page),
            Finding::Invalid { text, reason } => letters.push(invalid(text, reason, crawl)),
        }
    }
    (pages, letters)
}

fn invalid(text: String, reason: String, crawl: &CrawlRef) -> DeadLetter {
    DeadLetter {
        url: text,
        crawl: crawl.clone(),
        reason: Reason::Invalid,
        class: None,
        status: None,
        error: reason,
        attempts: 0,
        worker: None,
        failed_at: UnixMs::now(),
    }
}

//! The lease that keeps two runs of one spider from overlapping.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tracing::warn;
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{Discovery, Frontier, Result};

/// A run that died blocks the next one for no longer than this.
const TTL: Duration = Duration::from_secs(60);

/// A spider's discovery lease, renewed until it is closed or dropped.
pub(crate) struct Lease {
    frontier: Arc<dyn Frontier>,
    discovery: Discovery,
    renewal: JoinHandle<()>,
}

impl Lease {
    pub(crate) async fn take(frontier: Arc<dyn Frontier>, crawl: &CrawlRef) -> Result<Self> {
        let holder = WorkerId::of_this_machine();
        let discovery = frontier.open(crawl, holder.as_str(), TTL).await?;
        let renewal = tokio::spawn(renew(Arc::clone(&frontier), discovery.clone()));
        Ok(Self { frontier, discovery, renewal })
    }

    pub(crate) fn discovery(&self) -> &Discovery {
        &self.discovery
    }

    /// Ends discovery: every source has been read.
    pub(crate) async fn close(self) -> Result<()> {
        self.renewal.abort();
        let closing = self.frontier.close(self.discovery.clone());
        closing.await
    }

    /// Gives the lease back and leaves discovery open, for a later run to continue.
    pub(crate) async fn abandon(self) -> Result<()> {
        self.renewal.abort();
        self.frontier.renew(&self.discovery, Duration::ZERO).await
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

async fn renew(frontier: Arc<dyn Frontier>, discovery: Discovery) {
    loop {
        tokio::time::sleep(TTL / 4).await;
        if let Err(error) = frontier.renew(&discovery, TTL).await {
            warn!(%error, "lease not renewed");
        }
    }
}

//! The lease that keeps runs of one spider from feeding two of its crawls at once.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::task::JoinHandle;
use trawl_common::health::Health;
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{Discovery, Error, ErrorKind, Frontier, NewUrl, Result, Terms};

/// A spider's discovery lease, renewed until it is closed or dropped. Lost, it is taken again if that is possible:
/// the store may have forgotten it, or this process may have been stopped for longer than it lasts.
pub(crate) struct Lease {
    shared: Arc<Shared>,
    renewal: JoinHandle<()>,
}

struct Shared {
    frontier: Arc<dyn Frontier>,
    health: Arc<Health>,
    holder: WorkerId,
    crawl: CrawlRef,
    ttl: Duration,
    discovery: RwLock<Discovery>,
    retaking: tokio::sync::Mutex<()>,
}

impl Lease {
    /// Takes the lease for `ttl`: a run that dies blocks the next one for no longer than that. The crawl is new if its id was
    /// made for this run.
    pub(crate) async fn take(
        frontier: Arc<dyn Frontier>,
        health: Arc<Health>,
        crawl: &CrawlRef,
        terms: Terms,
        ttl: Duration,
        is_new: bool,
    ) -> Result<Self> {
        let holder = WorkerId::of_this_machine();
        let opening = || async {
            match is_new {
                true => frontier.begin(crawl, terms, holder.as_str(), ttl).await,
                false => frontier.open(crawl, terms, holder.as_str(), ttl).await,
            }
        };
        let discovery = health.patiently("opening the crawl", opening).await?;
        let shared = Arc::new(Shared {
            frontier,
            health,
            holder,
            crawl: crawl.clone(),
            ttl,
            discovery: RwLock::new(discovery),
            retaking: tokio::sync::Mutex::default(),
        });
        let renewal = tokio::spawn(renew(Arc::clone(&shared)));
        Ok(Self { shared, renewal })
    }

    /// The crawl that it is for.
    pub(crate) fn crawl(&self) -> &CrawlRef {
        &self.shared.crawl
    }

    /// What the crawl is bound to.
    pub(crate) fn terms(&self) -> Terms {
        self.shared.current().terms
    }

    /// Admits URLs; returns which were new.
    pub(crate) async fn admit(&self, urls: &[NewUrl]) -> Result<Vec<bool>> {
        let Shared { frontier, .. } = &*self.shared;
        self.shared.hold("admitting", |lease| async move { frontier.admit(&lease, urls).await }).await
    }

    /// Ends discovery: every source has been read.
    pub(crate) async fn close(self) -> Result<()> {
        self.renewal.abort();
        let Shared { frontier, .. } = &*self.shared;
        self.shared.hold("ending discovery", |lease| async move { frontier.close(lease).await }).await
    }

    /// Gives the lease back and leaves discovery open, for a later run to continue.
    pub(crate) async fn abandon(self) -> Result<()> {
        self.renewal.abort();
        let lease = self.shared.current();
        self.shared.frontier.renew(&lease, Duration::ZERO).await
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

impl Shared {
    fn current(&self) -> Discovery {
        self.discovery.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes a call that needs the lease, and takes it again where it was lost.
    async fn hold<T, F: Future<Output = Result<T>>>(
        &self,
        what: &'static str,
        call: impl Fn(Discovery) -> F,
    ) -> Result<T> {
        loop {
            let lease = self.current();
            match self.health.patiently(what, || call(lease.clone())).await {
                Err(error) if error.kind == ErrorKind::Stale => self.retake(&lease, &error).await?,
                result => return result,
            }
        }
    }

    async fn retake(&self, lost: &Discovery, error: &Error) -> Result<()> {
        let _turn = self.retaking.lock().await;
        if self.current() == *lost {
            tracing::warn!(%error, "lost the lease; taking it again");
            let opening = || self.frontier.reopen(lost, self.holder.as_str(), self.ttl);
            let taken = self.health.patiently("opening the crawl again", opening).await?;
            *self.discovery.write().unwrap_or_else(PoisonError::into_inner) = taken;
        }
        Ok(())
    }
}

/// Renews until the task is ended, or the lease is lost for good: then the next call that needs it says so.
async fn renew(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(shared.ttl / 4).await;
        let (frontier, ttl) = (&shared.frontier, shared.ttl);
        let renewed =
            shared.hold("renewing the lease", |lease| async move { frontier.renew(&lease, ttl).await });
        if renewed.await.is_err() {
            return;
        }
    }
}

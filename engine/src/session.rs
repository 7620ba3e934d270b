//! A producer's right to admit URLs: the lease that keeps runs of one spider from feeding two of its crawls at once,
//! and the calls under it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::RwLock;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tracing::warn;
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::message::Message;
use trawl_common::health::Health;
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{
    CrawlSession, Error, ErrorKind, NewWork, Opening, Result, SourcesRead, Terms, one_each,
};
use trawl_common::trace::Admission;

use crate::broker::Broker;
use crate::outbox::{self, Tries};
use crate::recent::{CHECK_INTERVAL, Recent};
use crate::records::{Lease, Past, Records};

/// A discovery lease, renewed until it is closed or dropped. A lost lease is taken again if possible: the store may
/// have forgotten it, or this process may have been stopped for longer than it lasts.
pub(crate) struct LeasedSession {
    held: Arc<Held>,
    background: [JoinHandle<()>; 2],
}

struct Held {
    records: Arc<dyn Records>,
    broker: Arc<dyn Broker>,
    health: Arc<Health>,
    holder: String,
    crawl: CrawlRef,
    ttl: Duration,
    lease: RwLock<Lease>,
    retaking: tokio::sync::Mutex<()>,
    recent: Recent,
}

impl LeasedSession {
    /// Takes the lease.
    pub(crate) async fn open(
        records: Arc<dyn Records>,
        broker: Arc<dyn Broker>,
        Opening { crawl, terms, text, judging, reads, is_new, lease: ttl }: Opening,
        health: Arc<Health>,
    ) -> Result<Self> {
        let process = WorkerId::of_this_machine();
        let holder = reads.map_or_else(|| process.to_string(), |sources| format!("{process} {sources:016x}"));
        let past = if is_new { Past::None } else { Past::Possible };
        let opening = || records.open(&crawl, terms, &holder, ttl, past);
        let lease = RwLock::new(health.retry("opening the crawl", opening).await?);
        // Before any URL is admitted, because workers need the text once they claim one.
        if let Some(text) = &text {
            let keeping = || records.keep_spider_text(&crawl, text);
            health.retry("keeping what the spider's file says", keeping).await?;
        }
        if let Some(judging) = &judging {
            let keeping = || records.keep_judging(&crawl, judging);
            health.retry("keeping what is expected of the crawl", keeping).await?;
        }
        let run = health.retry("looking at the store", || records.run(&crawl)).await?;
        let (retaking, recent) = (tokio::sync::Mutex::default(), Recent::new(run));
        let held = Arc::new(Held { records, broker, health, holder, crawl, ttl, lease, retaking, recent });
        let background =
            [tokio::spawn(renew(Arc::clone(&held))), tokio::spawn(keep_admitted(Arc::clone(&held)))];
        Ok(Self { held, background })
    }

    fn stop_background(&self) {
        self.background.iter().for_each(JoinHandle::abort);
    }
}

#[async_trait]
impl CrawlSession for LeasedSession {
    fn crawl(&self) -> &CrawlRef {
        &self.held.crawl
    }

    fn terms(&self) -> Terms {
        self.held.current().terms
    }

    async fn admit(&self, urls: &[NewWork]) -> Result<Vec<bool>> {
        self.held.admit(urls).await
    }

    async fn refuse(&self, dead_letters: &[DeadLetter]) -> Result<()> {
        let Held { records, broker, health, .. } = &*self.held;
        health.retry("storing dead letters", || broker.dead_letter(dead_letters)).await?;
        health.retry("noting what is no URL", || records.note_invalid(dead_letters)).await
    }

    async fn close_read(self: Box<Self>, read: Option<SourcesRead>) -> Result<()> {
        self.stop_background();
        self.held.readmit_lost().await?;
        let Held { records, .. } = &*self.held;
        let closing = |lease| async move { records.close(lease, read).await };
        self.held.under_lease("ending discovery", closing).await
    }

    async fn abandon(self: Box<Self>) -> Result<()> {
        self.stop_background();
        let lease = self.held.current();
        self.held.records.renew(&lease, Duration::ZERO).await
    }
}

impl Drop for LeasedSession {
    fn drop(&mut self) {
        self.stop_background();
    }
}

impl Held {
    fn current(&self) -> Lease {
        self.lease.read().clone()
    }

    /// 1. Admits the URLs: from here on they cannot be lost.
    /// 2. Publishes the new ones, and confirms them.
    ///
    /// A crash after the first step leaves them in the outbox, which the workers sweep.
    async fn admit(&self, urls: &[NewWork]) -> Result<Vec<bool>> {
        let Self { records, broker, health, crawl, .. } = self;
        let admission = Admission::begin();
        let admitting =
            |lease| async move { one_each(records.admit(&lease, urls).await?, urls.len(), "URLs") };
        let new = self.under_lease("admitting", admitting).await?;
        let admitted: Vec<NewWork> =
            urls.iter().zip(&new).filter(|(_, new)| **new).map(|(url, _)| url.clone()).collect();
        let mut messages: Vec<Message> = admitted.iter().map(|url| url.message(crawl)).collect();
        self.recent.note(admitted);
        admission.end(&mut messages, None);
        outbox::send(&**records, &**broker, messages, Tries::Repeated(health)).await?;
        Ok(new)
    }

    /// Admits again what another run of the store may have lost.
    async fn readmit_lost(&self) -> Result<()> {
        let at = Instant::now();
        let run = self.health.retry("looking at the store", || self.records.run(&self.crawl)).await?;
        let lost = self.recent.lost_in(&run);
        if !lost.is_empty() {
            let new = self.admit(&lost).await?.into_iter().filter(|new| *new).count();
            warn!(
                urls = lost.len(),
                new, "the store was started anew: admitted its last seconds' URLs again"
            );
        }
        self.recent.note_run(run, at);
        Ok(())
    }

    /// Makes a call that needs the lease, and takes the lease again if it was lost.
    async fn under_lease<T, F: Future<Output = Result<T>>>(
        &self,
        what: &'static str,
        call: impl Fn(Lease) -> F,
    ) -> Result<T> {
        loop {
            let lease = self.current();
            match self.health.retry(what, || call(lease.clone())).await {
                Err(error) if error.kind == ErrorKind::Stale => self.retake(&lease, &error).await?,
                result => return result,
            }
        }
    }

    async fn retake(&self, lost: &Lease, error: &Error) -> Result<()> {
        let _guard = self.retaking.lock().await;
        if self.current() == *lost {
            warn!(%error, "lost the lease; taking it again");
            let Lease { crawl, terms, .. } = lost;
            let opening = || self.records.open(crawl, *terms, &self.holder, self.ttl, Past::Certain);
            let taken = self.health.retry("opening the crawl again", opening).await?;
            *self.lease.write() = taken;
        }
        Ok(())
    }
}

/// Admits again what a store loses, until the task is ended, or that fails: then the next call does as well.
async fn keep_admitted(held: Arc<Held>) {
    loop {
        sleep(CHECK_INTERVAL).await;
        if held.readmit_lost().await.is_err() {
            return;
        }
    }
}

/// Renews the lease until the task is ended, or the lease is lost for good: then the next call that needs it fails.
async fn renew(held: Arc<Held>) {
    loop {
        sleep(held.ttl / 4).await;
        let (records, ttl) = (&held.records, held.ttl);
        let renewing = |lease| async move { records.renew(&lease, ttl).await };
        if held.under_lease("renewing the lease", renewing).await.is_err() {
            return;
        }
    }
}

//! The right to admit URLs to a crawl.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::health::Health;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{CrawlSession, NewWork, Opening, Result, SourcesRead, Terms};

use crate::embedded::admission;
use crate::embedded::admission::leases::Token;
use crate::embedded::crawls::failures;
use crate::embedded::records::address::Address;
use crate::embedded::store::Store;

/// A lease that lasts as long as this value. If dropped without being closed or abandoned, it lapses after a while,
/// like that of a process that died.
pub(crate) struct EmbeddedSession {
    store: Arc<Store>,
    health: Arc<Health>,
    crawl: CrawlRef,
    terms: Terms,
    token: Token,
    ttl: Duration,
}

impl EmbeddedSession {
    /// Takes the lease. The file never forgets a crawl, so it does not matter whether this one is new.
    pub(crate) async fn open(store: Arc<Store>, opening: Opening, health: Arc<Health>) -> Result<Self> {
        let Opening { crawl, terms, text, judging, reads, lease: ttl, .. } = opening;
        let token: Token = rand::random();
        let open = || {
            let (crawl, text, judging) = (crawl.clone(), text.clone(), judging.clone());
            let lease = (token, reads);
            store.call(move |db, memory| {
                admission::open(db, memory, &crawl, &terms, (text.as_ref(), judging.as_ref()), lease)
            })
        };
        let terms = health.retry("opening the crawl", open).await?;
        Ok(Self { store, health, crawl, terms, token, ttl })
    }
}

#[async_trait]
impl CrawlSession for EmbeddedSession {
    fn crawl(&self) -> &CrawlRef {
        &self.crawl
    }

    fn terms(&self) -> Terms {
        self.terms
    }

    async fn admit(&self, urls: &[NewWork]) -> Result<Vec<bool>> {
        let addressed = |new: &NewWork| (Address::new(&self.crawl, new.work.as_str()), new.clone());
        let urls: Arc<[(Address, NewWork)]> = urls.iter().map(addressed).collect();
        let admitting = || {
            let (crawl, urls) = (self.crawl.clone(), Arc::clone(&urls));
            self.store.call(move |db, memory| admission::admit(db, memory, &crawl, &urls))
        };
        self.health.retry("admitting", admitting).await
    }

    async fn refuse(&self, dead_letters: &[DeadLetter]) -> Result<()> {
        let dead_letters: Arc<[DeadLetter]> = dead_letters.into();
        let noting = || {
            let dead_letters = Arc::clone(&dead_letters);
            self.store.call(move |db, _| failures::refuse(db, &dead_letters))
        };
        self.health.retry("noting what is no URL", noting).await
    }

    async fn close_read(self: Box<Self>, read: Option<SourcesRead>) -> Result<()> {
        let closing = || {
            let (crawl, token) = (self.crawl.clone(), self.token);
            self.store.call(move |db, memory| admission::close(db, memory, &crawl, token, read.as_ref()))
        };
        self.health.retry("ending discovery", closing).await
    }

    async fn abandon(self: Box<Self>) -> Result<()> {
        let token = self.token;
        self.store.call(move |db, memory| admission::abandon(db, memory, token)).await
    }
}

impl Drop for EmbeddedSession {
    /// After the session was closed or abandoned, there is no lease left that could lapse.
    fn drop(&mut self) {
        let (token, ttl) = (self.token, self.ttl);
        self.store.note(move |memory| memory.leases.lapse(token, ttl));
    }
}

//! What people see of crawls and workers.

use std::sync::PoisonError;
use std::time::Instant;

use async_trait::async_trait;
use trawl_common::frontier::crawl::{Books, HostBooks};
use trawl_common::names::{CrawlId, CrawlRef};
use trawl_common::ports::{Backlog, Result, Stats, Terms, WorkerState};

use super::frontier::EmbeddedRecords;
use super::{books, crawls};
#[async_trait]
impl Stats for EmbeddedRecords {
    async fn books(&self, crawl: &CrawlId) -> Result<Option<Books>> {
        let crawl = crawl.clone();
        self.store.call(move |db, memory| crawls::books_of(db, memory.clock, &crawl)).await
    }

    async fn crawls(&self) -> Result<Vec<Books>> {
        self.store.call(|db, memory| crawls::all_books(db, memory.clock)).await
    }

    async fn hosts(&self, crawl: &CrawlRef, most: usize) -> Result<Vec<HostBooks>> {
        let crawl = crawl.clone();
        self.store
            .call(move |db, _| match crawls::find(db, &crawl)? {
                Some(known) => books::hosts(db, known.key, most),
                None => Ok(Vec::new()),
            })
            .await
    }

    async fn backlog(&self, crawl: &CrawlRef) -> Result<Backlog> {
        let crawl = crawl.id.clone();
        self.store.call(move |db, memory| crawls::backlog_of(db, memory.clock, &crawl)).await
    }

    async fn terms(&self, crawl: &CrawlRef) -> Result<Terms> {
        let crawl = crawl.clone();
        self.store
            .call(move |db, _| Ok(crawls::find(db, &crawl)?.map(|crawl| crawl.terms).unwrap_or_default()))
            .await
    }

    /// The worker of this process.
    async fn workers(&self) -> Result<Vec<WorkerState>> {
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        let living = worker.iter().filter(|(_, until)| *until > Instant::now());
        Ok(living.map(|(state, _)| state.clone()).collect())
    }
}

//! Control of the crawls in one state file. Each command is one transaction.

use std::sync::Arc;

use async_trait::async_trait;
use trawl_common::frontier::dead_letter::DeadLetterEntry;
use trawl_common::frontier::{Key, TaskKey, Work};
use trawl_common::names::{CrawlRef, SpiderName, WorkerId};
use trawl_common::ports::{Control, FailedPage, HoldCrawl, Result, Seen};

use crate::embedded::crawls;
use crate::embedded::crawls::commands;
use crate::embedded::crawls::failures;
use crate::embedded::crawls::forgetting;
use crate::embedded::crawls::stats::LastBeat;
use crate::embedded::records::address::Address;
use crate::embedded::records::payloads;
use crate::embedded::store::Store;

/// Commands for the crawls of one state file.
pub(crate) struct EmbeddedControl {
    store: Arc<Store>,
    last_beat: Arc<LastBeat>,
}

impl EmbeddedControl {
    /// Creates the control of `store`, and of the worker with this heartbeat.
    pub(crate) fn new(store: Arc<Store>, last_beat: Arc<LastBeat>) -> Self {
        Self { store, last_beat }
    }
}

#[async_trait]
impl HoldCrawl for EmbeddedControl {
    async fn hold(&self, crawl: &CrawlRef, why: &str) -> Result<()> {
        let (crawl, why) = (crawl.clone(), why.to_owned());
        self.store.call(move |db, _| commands::hold(db, &crawl, &why)).await
    }
}

#[async_trait]
impl Control for EmbeddedControl {
    async fn drain(&self, worker: &WorkerId) -> Result<bool> {
        Ok(self.last_beat.drain(worker))
    }

    async fn forget_seen(&self, spider: &SpiderName, keys: &[Key]) -> Result<Vec<Seen>> {
        let addresses = Address::of_spider(spider, keys);
        self.store.call(move |db, memory| forgetting::see(db, memory, &addresses, true)).await
    }

    async fn forget_all_seen(&self, spider: &SpiderName) -> Result<()> {
        let spider = spider.clone();
        self.store.call(move |db, memory| forgetting::forget_all(db, memory, &spider)).await
    }

    async fn forget_crawl(&self, crawl: &CrawlRef) -> Result<()> {
        let crawl = crawl.clone();
        self.store.call(move |db, memory| forgetting::forget_crawl(db, memory, &crawl)).await
    }

    async fn pause(&self, crawl: &CrawlRef) -> Result<()> {
        let crawl = crawl.clone();
        self.store.call(move |db, _| commands::pause(db, &crawl)).await
    }

    async fn resume(&self, crawl: &CrawlRef) -> Result<()> {
        let crawl = crawl.clone();
        self.store.call(move |db, memory| commands::resume(db, memory, &crawl)).await
    }

    async fn cancel(&self, crawl: &CrawlRef) -> Result<()> {
        let crawl = crawl.clone();
        self.store.call(move |db, memory| commands::cancel(db, memory, &crawl)).await
    }

    async fn cancel_tasks(&self, crawl: &CrawlRef, keys: &[TaskKey]) -> Result<u64> {
        let (crawl, keys) = (crawl.clone(), keys.to_vec());
        self.store.call(move |db, memory| commands::cancel_tasks(db, memory, &crawl, &keys)).await
    }

    async fn failed(&self, crawl: &CrawlRef, cursor: u64) -> Result<FailedPage> {
        crawls::run_on(&self.store, crawl, move |db, _, known| failures::page(db, known.key, cursor)).await
    }

    async fn count_failed(&self, crawl: &CrawlRef) -> Result<u64> {
        crawls::run_on(&self.store, crawl, move |db, _, known| failures::count(db, known.key)).await
    }

    async fn failure(&self, crawl: &CrawlRef, key: &Key) -> Result<Option<DeadLetterEntry>> {
        let key = key.clone();
        crawls::run_on(&self.store, crawl, move |db, _, known| {
            Ok(failures::find(db, known.key, &key)?.map(|(_, note)| note))
        })
        .await
    }

    async fn work(&self, crawl: &CrawlRef, key: &Key) -> Result<Option<Work>> {
        let key = key.clone();
        crawls::run_on(&self.store, crawl, move |db, _, known| payloads::find(db, known.key, &key)).await
    }

    async fn invalid(&self, crawl: &CrawlRef) -> Result<Vec<(String, DeadLetterEntry)>> {
        crawls::run_on(&self.store, crawl, move |db, _, known| failures::invalid(db, known.key)).await
    }

    async fn purge_invalid(&self, crawl: &CrawlRef, texts: &[String]) -> Result<u64> {
        let texts = texts.to_vec();
        crawls::run_on(&self.store, crawl, move |db, _, known| {
            texts.iter().map(|text| Ok(u64::from(failures::remove_invalid(db, known.key, text)?))).sum()
        })
        .await
    }

    async fn purge(&self, crawl: &CrawlRef, keys: &[Key]) -> Result<u64> {
        let (crawl, keys) = (crawl.clone(), keys.to_vec());
        self.store.call(move |db, _| commands::purge(db, &crawl, &keys)).await
    }
}

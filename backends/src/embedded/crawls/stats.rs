//! Operator view of crawls and workers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;
use trawl_common::frontier::crawl::{CrawlStats, HostStats};
use trawl_common::frontier::{Key, UrlState};
use trawl_common::names::{CrawlId, CrawlRef, SpiderName, WorkerId};
use trawl_common::ports::{
    Backlog, BeatReply, Heartbeat, LaneState, Places, Result, Seen, SeenUrls, SpiderTexts, Stats, TaskPage,
    Terms, Vanished, WorkerState,
};
use trawl_common::spider::SpiderText;
use trawl_common::time::UnixMs;

use crate::embedded::crawls;
use crate::embedded::crawls::beats;
use crate::embedded::crawls::crawl_stats;
use crate::embedded::crawls::crawl_stats::Clock;
use crate::embedded::crawls::forgetting;
use crate::embedded::crawls::lanes;
use crate::embedded::crawls::places;
use crate::embedded::crawls::tasks;
use crate::embedded::records;
use crate::embedded::records::address::Address;
use crate::embedded::store::Store;

/// Time that a worker counts as alive after a heartbeat.
const BEAT_TTL: Duration = Duration::from_secs(15);

/// The last heartbeat of this process's worker, and its expiry.
#[derive(Default)]
pub(crate) struct LastBeat(Mutex<Option<(WorkerState, Instant)>>);

impl LastBeat {
    /// Stores a heartbeat of the worker. Returns the reply.
    pub(crate) fn is(&self, beat: &Heartbeat) -> BeatReply {
        let mut last = self.0.lock();
        let was_asked = |(state, _): &(WorkerState, Instant)| state.worker == beat.worker && state.draining;
        let draining = last.as_ref().is_some_and(was_asked);
        let state = WorkerState { draining, ..WorkerState::from(beat.clone()) };
        *last = Some((state, Instant::now() + BEAT_TTL));
        if draining { BeatReply::Drain } else { BeatReply::GoOn }
    }

    /// Asks a worker to end. Returns whether it is alive.
    pub(crate) fn drain(&self, worker: &WorkerId) -> bool {
        let mut last = self.0.lock();
        let living =
            last.as_mut().filter(|(state, until)| state.worker == *worker && *until > Instant::now());
        living.map(|(state, _)| state.draining = true).is_some()
    }

    /// Removes the worker.
    pub(crate) fn end(&self, worker: &WorkerId) {
        let mut last = self.0.lock();
        last.take_if(|(state, _)| state.worker == *worker);
    }

    pub(crate) fn living(&self) -> Option<WorkerState> {
        let last = self.0.lock();
        last.as_ref().filter(|(_, until)| *until > Instant::now()).map(|(state, _)| state.clone())
    }
}

/// The stats of one state file.
pub(crate) struct EmbeddedStats {
    store: Arc<Store>,
    clock: Clock,
    last_beat: Arc<LastBeat>,
}

impl EmbeddedStats {
    /// Creates the stats of `store`, by this clock.
    pub(crate) fn new(store: Arc<Store>, clock: Clock, last_beat: Arc<LastBeat>) -> Self {
        Self { store, clock, last_beat }
    }
}

#[async_trait]
impl SpiderTexts for EmbeddedStats {
    async fn spider_text(&self, crawl: &CrawlRef) -> Result<Option<SpiderText>> {
        let crawl = crawl.clone();
        self.store.call(move |db, _| crawls::spider_text(db, &crawl)).await
    }
}

#[async_trait]
impl Stats for EmbeddedStats {
    async fn crawl_stats(&self, crawl: &CrawlId) -> Result<Option<CrawlStats>> {
        let (clock, crawl) = (self.clock, crawl.clone());
        self.store.call(move |db, _| crawl_stats::of(db, clock, &crawl)).await
    }

    async fn crawls(&self) -> Result<Vec<CrawlStats>> {
        let clock = self.clock;
        self.store.call(move |db, _| crawl_stats::all(db, clock)).await
    }

    async fn hosts(&self, crawl: &CrawlRef, most: usize) -> Result<Vec<HostStats>> {
        crawls::run_on(&self.store, crawl, move |db, _, known| crawl_stats::hosts(db, known.key, most)).await
    }

    async fn backlog(&self, crawl: &CrawlRef) -> Result<Backlog> {
        let (clock, crawl) = (self.clock, crawl.id.clone());
        self.store.call(move |db, _| crawl_stats::backlog(db, clock, &crawl)).await
    }

    async fn terms(&self, crawl: &CrawlRef) -> Result<Terms> {
        crawls::run_on(&self.store, crawl, |_, _, known| Ok(known.terms)).await
    }

    async fn url_state(&self, crawl: &CrawlRef, key: &Key) -> Result<UrlState> {
        let address = Address::new(crawl, key.as_str());
        self.store
            .call(move |db, memory| {
                let Some(known) = crawls::find(db, &address.crawl)? else { return Ok(UrlState::Unseen) };
                let (seen, holdings) = (&mut memory.seen, &memory.holdings);
                Ok(records::find(db, seen, holdings, &known, &address, UnixMs::now())?.1)
            })
            .await
    }

    async fn may_have_tasks(&self, crawl: &CrawlRef) -> Result<bool> {
        crawls::run_on(&self.store, crawl, move |db, _, known| tasks::exist(db, known.key)).await
    }

    async fn tasks(&self, crawl: &CrawlRef, cursor: u64) -> Result<TaskPage> {
        crawls::run_on(&self.store, crawl, move |db, memory, known| {
            tasks::page(db, &memory.holdings, known.key, cursor, UnixMs::now())
        })
        .await
    }

    /// Returns the worker of this process.
    async fn workers(&self) -> Result<Vec<WorkerState>> {
        let living = match self.clock {
            Clock::Runs => self.last_beat.living(),
            Clock::AsTouched => self.store.call(|db, _| beats::read(db, BEAT_TTL)).await?,
        };
        Ok(living.into_iter().collect())
    }

    /// A worker that is gone has ended with its process, and its heartbeats with it.
    async fn vanished(&self) -> Result<Vec<Vanished>> {
        Ok(Vec::new())
    }

    async fn places(&self, crawl: &CrawlRef) -> Result<Places> {
        crawls::run_on(&self.store, crawl, move |db, memory, known| {
            places::read(db, &memory.holdings, known.key, UnixMs::now())
        })
        .await
    }

    async fn seen(&self, spider: &SpiderName) -> Result<Option<u64>> {
        let spider = spider.clone();
        self.store.call(move |db, _| forgetting::count_seen(db, &spider)).await
    }

    /// The file stores only fingerprints.
    async fn walk_seen(&self, _: &SpiderName, _: u64) -> Result<SeenUrls> {
        Ok(SeenUrls::default())
    }

    async fn seen_urls(&self, spider: &SpiderName, keys: &[Key]) -> Result<Vec<Seen>> {
        let addresses = Address::of_spider(spider, keys);
        self.store.call(move |db, memory| forgetting::see(db, memory, &addresses, false)).await
    }

    async fn lanes(&self) -> Result<Vec<LaneState>> {
        self.store.call(|db, memory| lanes::read(db, &memory.holdings, UnixMs::now())).await
    }
}

//! The periodic part of the sweep: the lease, probes, crawls that can end or can be forgotten.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use tracing::{debug, info};
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{ErrorKind, Result, WorkerState};
use trawl_common::time::UnixMs;
use trawl_engine::{ProbeTimes, Sweep};

use crate::redis::RedisRecords;
use crate::redis::crawls::standings::Standing;
use crate::redis::keys::{self, CrawlKeys};
use crate::redis::recovery::sweep_position::{SweepPosition, Watermarks};

/// Maximum number of batches of a hundred records that are skipped at a time in a crawl that has reached its page
/// limit: a producer may still be adding records.
const CLEAR_STEPS: u32 = 100;

/// Minimum time that a crawl that is over is kept: copies of its messages may still be in transit.
const RETENTION: Duration = Duration::from_secs(24 * 3600);

/// Maximum number of crawls that are forgotten at a time.
const MAX_FORGOTTEN: usize = 100;

/// A worker without a heartbeat for this long is gone.
const GONE_AFTER: Duration = Duration::from_secs(24 * 3600);

/// The field of [`keys::WATERMARKS`] with the sweep position: the crawl, a blank, the cursor.
const PLACE: &str = "place";

impl RedisRecords {
    /// Interval between two periodic checks of the sweeper.
    pub(crate) fn sweeper_interval(&self) -> Duration {
        self.lost_after / 12
    }

    /// 1. Takes the lease of the sweeping process; without it, nothing else is done.
    /// 2. Applies the log to a store that is new or was emptied.
    /// 3. Sends a probe, if one is due.
    /// 4. Completes log and journal if RabbitMQ may have been emptied, and logs the page counts of crawls.
    /// 5. Announces the events of crawls and hosts.
    /// 6. Ends crawls that can end, and announces that.
    /// 7. Continues `round`, or starts one at the stored position; forgets old crawls.
    pub(crate) async fn run_sweeper(
        &self,
        worker: &WorkerId,
        round: Option<SweepPosition>,
        sweep: &mut Sweep,
    ) -> Result<Option<SweepPosition>> {
        if !self.is_sweeper(worker).await? {
            return Ok(None);
        }
        let known: HashMap<String, String> =
            self.redis.query(redis::cmd("HGETALL").arg(keys::WATERMARKS)).await?;
        self.apply_log_once(&known).await?;
        let now = self.now().await?;
        let watermarks = self.probe(&known, now, sweep).await?;
        let crawls = self.standings().await?;
        match self.complete_log(&crawls).await {
            // The store's crawls can end without RabbitMQ.
            Err(error) if error.is_temporary() => debug!(%error, "the stream control is looked at later"),
            completed => completed?,
        }
        self.complete_journal().await?;
        if let Some(backup) = &self.backup {
            let limited = crawls.iter().filter(|one| one.is_open() && one.max_pages.is_some());
            backup.count(limited.map(|one| (one.crawl.id.to_string(), one.done)).collect()).await;
        }
        let workers = match crawls.iter().any(Standing::is_running) {
            true => self.readable_workers().await?,
            false => Vec::new(),
        };
        for standing in crawls.iter().filter(|one| !(one.is_over() && one.is_announced)) {
            let news = self.notice(&standing.crawl, &workers, now).await;
            sweep.news.extend(self.unless_wrong_type(&standing.crawl, news).await?.unwrap_or_default());
        }
        if let Some(backup) = &self.backup {
            sweep.hosts = backup.hosts.news().await?;
        }
        for standing in &crawls {
            let ended = self.end_if_possible(standing, &watermarks, sweep).await;
            self.unless_wrong_type(&standing.crawl, ended).await?;
        }
        let round = match round {
            Some(round) if !round.left.is_empty() => {
                self.keep_place(&round).await?;
                round.go_on(watermarks, &crawls)
            }
            finished => {
                self.forget_old(&crawls, now).await?;
                let place = if finished.is_none() { known.get(PLACE) } else { None };
                SweepPosition::begin(watermarks, &crawls, place)
            }
        };
        Ok(Some(round))
    }

    /// Returns the living workers; none if somebody has written over one of them, as no crawl's end depends on them.
    async fn readable_workers(&self) -> Result<Vec<WorkerState>> {
        match self.read_workers().await {
            Err(error) if error.kind == ErrorKind::Corrupt => {
                debug!(%error, "the troubles of workers are not looked at");
                Ok(Vec::new())
            }
            workers => workers,
        }
    }

    async fn is_sweeper(&self, worker: &WorkerId) -> Result<bool> {
        let mut call = self.scripts.hold.key(keys::SWEEPER);
        call.arg(worker.as_str()).arg((self.lost_after / 2).as_millis() as u64);
        self.redis.run(&call).await
    }

    /// Returns the watermarks that probes have reached, and sends another probe if the last was sent half of
    /// `lost_after` ago. A probe that could not be sent must not count as sent, or the queue would seem to have lost
    /// all its messages. Times later than `now` are from before the clock was set back.
    async fn probe(
        &self,
        known: &HashMap<String, String>,
        now: UnixMs,
        sweep: &mut Sweep,
    ) -> Result<Watermarks> {
        let of = |field: &str| {
            let at = known.get(field).and_then(|text| text.parse().ok());
            at.filter(|&at| at <= now.0).unwrap_or_default()
        };
        let previous = UnixMs(of("sent"));
        if previous.plus(self.lost_after / 2) <= now {
            sweep.probe = Some(ProbeTimes { sent: now, previous });
        }
        Ok(Watermarks {
            delivered: SourceQueue::ALL.map(|source| of(source.as_str())),
            lost_before: SourceQueue::ALL.map(|source| of(&format!("gap:{source}"))),
        })
    }

    /// Ends crawls that can end. The end of a crawl that is cleared up is announced until that has succeeded.
    async fn end_if_possible(
        &self,
        standing: &Standing,
        watermarks: &Watermarks,
        sweep: &mut Sweep,
    ) -> Result<()> {
        let Standing { crawl, status, is_cleared, is_announced, .. } = standing;
        if standing.is_over() {
            if let Some(status) = status
                && !(*is_announced || self.has_logged_end(crawl).await)
            {
                self.log_end(crawl, *status).await;
            }
            if !is_cleared {
                sweep.corrupt.extend(self.unreported(crawl).await?);
            } else if !is_announced {
                sweep.news.extend(self.news_of_end(crawl).await?);
            }
        } else if standing.is_running() {
            if standing.is_evicted && !crawl.is_adhoc() {
                sweep.evicted.push(crawl.clone());
            }
            sweep.corrupt.extend(self.unreported(crawl).await?);
            let mut steps = if standing.is_full() { CLEAR_STEPS } else { 0 };
            while steps > 0 && self.clear_step(crawl).await? > 0 {
                steps -= 1;
            }
            let mut call = self.scripts.end.on(&CrawlKeys::new(crawl));
            call.arg(crawl.id.as_str()).arg(watermarks.lowest()).arg(self.lost_after.as_millis() as u64);
            match self.redis.run::<String>(&call).await?.as_str() {
                "await" => sweep.awaiting.push(crawl.clone()),
                "discovered" => self.try_log_discovery(crawl).await,
                "ended" => {
                    self.try_log_discovery(crawl).await;
                    self.log_end(crawl, CrawlState::Finished).await;
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn keep_place(&self, round: &SweepPosition) -> Result<()> {
        let crawl = round.left.front().map_or("", |crawl| crawl.id.as_str());
        let place = format!("{crawl} {}", round.cursor);
        self.write(redis::cmd("HSET").arg(keys::WATERMARKS).arg(PLACE).arg(place)).await
    }

    /// Deletes the sweep position at the end of a round: the next one begins at the start.
    pub(crate) async fn drop_place(&self) -> Result<()> {
        self.redis.query(redis::cmd("HDEL").arg(keys::WATERMARKS).arg(PLACE)).await
    }

    /// Forgets the oldest crawls that are over, except for the number to keep, and workers that are long gone.
    async fn forget_old(&self, crawls: &[Standing], now: UnixMs) -> Result<()> {
        let mut over: Vec<&Standing> =
            crawls.iter().filter(|one| one.is_cleared && one.is_announced).collect();
        over.sort_by_key(|standing| std::cmp::Reverse(standing.ended));
        let old = over.into_iter().skip(self.keep.crawls).filter(|one| one.ended.plus(RETENTION) < now);
        for Standing { crawl, .. } in old.take(MAX_FORGOTTEN) {
            info!(crawl = %crawl.id, spider = %crawl.spider, "forgetting a crawl that is long over");
            self.unlink_crawl(crawl).await?;
        }
        self.forget_workers(UnixMs(now.0.saturating_sub(GONE_AFTER.as_millis() as u64))).await
    }
}

impl SweepPosition {
    /// Starts at the crawl and the cursor of `place`, if that crawl exists.
    fn begin(watermarks: Watermarks, crawls: &[Standing], place: Option<&String>) -> Self {
        let open = crawls.iter().filter(|standing| standing.is_open());
        let mut left: VecDeque<CrawlRef> = open.map(|standing| standing.crawl.clone()).collect();
        let (first, cursor) = place.and_then(|place| place.split_once(' ')).unwrap_or_default();
        let found = left.iter().position(|crawl| crawl.id.as_str() == first);
        left.rotate_left(found.unwrap_or_default());
        let cursor = if found.is_some() { cursor.to_owned() } else { "0".to_owned() };
        Self::new(watermarks, crawls, left, cursor)
    }

    /// Continues with the remaining crawls that are not over.
    fn go_on(mut self, watermarks: Watermarks, crawls: &[Standing]) -> Self {
        let is_open = |crawl: &CrawlRef| crawls.iter().any(|one| one.crawl == *crawl && one.is_open());
        if !self.left.front().is_some_and(is_open) {
            self.cursor = "0".to_owned();
        }
        self.left.retain(is_open);
        Self::new(watermarks, crawls, self.left, self.cursor)
    }

    fn new(watermarks: Watermarks, crawls: &[Standing], left: VecDeque<CrawlRef>, cursor: String) -> Self {
        let over = crawls.iter().filter(|standing| standing.is_over() && !standing.is_cleared);
        let clearing = over.map(|standing| (standing.crawl.clone(), standing.is_announced)).collect();
        let open = crawls.iter().filter(|standing| standing.is_open());
        let records = open.map(|standing| standing.records).sum();
        Self { looked: Instant::now(), clearing, left, cursor, records, watermarks }
    }
}

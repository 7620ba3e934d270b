//! A worker's part in an engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use moka::sync::Cache;
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::health::Health;
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{Claimed, ErrorKind, History, OpenCrawl, Pages, Requests, Result, one_each};
use trawl_common::settings::{Acks, Settings};
use trawl_common::time::UnixMs;

use crate::broker::Broker;
use crate::by_urgency::{Arriving, ByUrgency};
use crate::in_flight::InFlight;
use crate::own::Own;
use crate::records::Records;

/// What fails while a crawl's terms are not known.
pub(crate) const LOOKING_UP: &str = "looking up a crawl";

/// So many crawls are known at a time.
const CRAWLS: u64 = 1_000;

/// How long a message waits whose crawl cannot be read.
const UNREADABLE: Duration = Duration::from_secs(60);

/// Where claimed URLs and tasks go.
pub(crate) struct Exits {
    pub(crate) urls: mpsc::UnboundedSender<Arriving>,
    pub(crate) tasks: mpsc::UnboundedSender<Arriving>,
}

/// What every part of a worker's membership looks at.
pub(crate) struct Member {
    pub(crate) worker: WorkerId,
    pub(crate) settings: Settings,
    pub(crate) health: Arc<Health>,
    pub(crate) requests: Arc<dyn Requests>,
    pub(crate) records: Arc<dyn Records>,
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) pages: Arc<dyn Pages>,
    /// Where crawls are kept for good, if they are.
    pub(crate) history: Option<Arc<dyn History>>,
    pub(crate) in_flight: InFlight,
    /// The crawls, each looked up when its first URL comes.
    pub(crate) crawls: Cache<CrawlRef, OpenCrawl>,
    /// Messages that were dropped, as they said without proof that they are the fleet's.
    pub(crate) unproven: AtomicU64,
    /// Whether there was something that only newer workers read.
    pub(crate) has_met_newer: AtomicBool,
    /// How many tasks it may hold; none if it runs no programs.
    pub(crate) tasks: u16,
    /// Where what is claimed goes, to be handed out.
    pub(crate) exits: Exits,
    /// The URLs that were claimed and not handed out.
    pub(crate) claimed: Mutex<ByUrgency>,
    /// The tasks likewise.
    pub(crate) claimed_tasks: Mutex<ByUrgency>,
    pub(crate) own: mpsc::Sender<Own>,
    /// Ends the taking of URLs.
    pub(crate) stop: CancellationToken,
    /// That it has ended.
    pub(crate) has_stopped: CancellationToken,
}

impl Member {
    /// So many crawls, none of which is known yet.
    pub(crate) fn no_crawls() -> Cache<CrawlRef, OpenCrawl> {
        Cache::new(CRAWLS)
    }

    /// What is settled of a crawl, looked up once. Fails if what the records have of it cannot be read.
    pub(crate) async fn crawl(&self, crawl: &CrawlRef) -> Result<OpenCrawl> {
        if let Some(known) = self.crawls.get(crawl) {
            return Ok(known);
        }
        let looking = async || match self.look_up(crawl).await {
            Err(error) if error.kind == ErrorKind::Corrupt => Ok(Err(error)),
            known => known.map(Ok),
        };
        let known = self.health.until_done(LOOKING_UP, looking).await?;
        self.crawls.insert(crawl.clone(), known);
        Ok(known)
    }

    async fn look_up(&self, crawl: &CrawlRef) -> Result<OpenCrawl> {
        let terms = self.records.terms(crawl).await?;
        let stats = self.records.crawl_stats(&crawl.id).await?;
        Ok(OpenCrawl { terms, started: stats.map_or_else(UnixMs::now, |stats| stats.started) })
    }

    /// Hands out what this worker holds.
    pub(crate) async fn hand_out(&self, message: Message, attempts: u32, starts: u32, is_beyond_limit: bool) {
        let crawl = match self.crawl(&message.crawl).await {
            Ok(crawl) => crawl,
            // That crawl stands still until it is repaired; all others go on.
            Err(error) => {
                self.health.fails_lately(LOOKING_UP, &error, 2 * UNREADABLE);
                let until = UnixMs::now().plus(UNREADABLE);
                return self.settle_own(Own::Waits { message, until }).await;
            }
        };
        let claimed = Claimed { message, attempts, starts, is_beyond_limit, crawl };
        self.send_out(claimed);
    }

    /// Hands out what is claimed; what was handed out before and has not begun, in its turn.
    pub(crate) fn send_out(&self, claimed: Claimed) {
        let turn = self.in_flight.turn(&claimed.message);
        let exit = if claimed.message.lane == Lane::Task { &self.exits.tasks } else { &self.exits.urls };
        // Closed only when the worker ends, which releases what it holds.
        let _ = exit.send(Arriving { claimed, turn });
    }

    /// Has the engine itself settle something.
    pub(crate) async fn settle_own(&self, own: Own) {
        // Closed only when the worker ends.
        let _ = self.own.send(own).await;
    }

    /// When messages of a lane are acknowledged.
    pub(crate) fn acks(&self, message: &Message) -> Acks {
        self.settings.queues.acks(message.lane)
    }

    /// Whether it holds as much as the broker sends ahead.
    pub(crate) fn is_full(&self) -> bool {
        self.in_flight.len() >= usize::from(self.settings.worker.prefetch) * SourceQueue::ALL.len()
    }

    /// What has been held for longer is kept by saying so; most pages are settled before.
    pub(crate) fn lease_period(&self) -> Duration {
        self.settings.recovery.lost_after / 12
    }

    /// Goes on holding these; returns, in order, which are still this worker's.
    pub(crate) async fn extend(&self, messages: &[Message]) -> Vec<bool> {
        let Self { records, health, worker, .. } = self;
        if messages.is_empty() {
            return Vec::new();
        }
        let keeping = async || one_each(records.extend(worker, messages).await?, messages.len(), "messages");
        health.until_done("extending leases", keeping).await
    }
}

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
use trawl_common::ports::{
    Claimed, ErrorKind, Fatal, History, OpenCrawl, PageHistories, Requests, Result, one_each,
};
use trawl_common::settings::{Acks, Settings};
use trawl_common::time::UnixMs;

use crate::broker::Broker;
use crate::by_urgency::{Arriving, ByUrgency};
use crate::held_urls::HeldUrls;
use crate::internal_message::InternalMessage;
use crate::records::Records;

/// Name of the failing operation while a crawl's terms are unknown.
pub(crate) const LOOKING_UP: &str = "looking up a crawl";

/// Maximum number of crawls that are cached.
const MAX_CRAWLS: u64 = 1_000;

/// How long a message waits if its crawl cannot be read.
const UNREADABLE_DELAY: Duration = Duration::from_secs(60);

/// The channels for claimed URLs and tasks.
pub(crate) struct Exits {
    pub(crate) urls: mpsc::UnboundedSender<Arriving>,
    pub(crate) tasks: mpsc::UnboundedSender<Arriving>,
}

/// State shared by all parts of a worker's membership.
pub(crate) struct Member {
    pub(crate) worker: WorkerId,
    pub(crate) settings: Settings,
    pub(crate) health: Arc<Health>,
    pub(crate) requests: Arc<dyn Requests>,
    pub(crate) records: Arc<dyn Records>,
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) pages: Arc<dyn PageHistories>,
    /// The permanent history of crawls, if there is one.
    pub(crate) history: Option<Arc<dyn History>>,
    pub(crate) held: HeldUrls,
    /// The crawls, each looked up when its first URL arrives.
    pub(crate) crawls: Cache<CrawlRef, OpenCrawl>,
    /// The number of messages that were dropped because they claimed without proof to be the fleet's.
    pub(crate) unproven: AtomicU64,
    /// Whether anything was found that only newer workers can read.
    pub(crate) has_met_newer: AtomicBool,
    /// Maximum number of tasks that it may hold; zero if it runs no programs.
    pub(crate) tasks: u16,
    /// The channels through which claimed messages are handed out.
    pub(crate) exits: Exits,
    /// Claimed URLs that are not handed out yet.
    pub(crate) claimed: Mutex<ByUrgency>,
    /// Claimed tasks that are not handed out yet.
    pub(crate) claimed_tasks: Mutex<ByUrgency>,
    pub(crate) own: mpsc::Sender<InternalMessage>,
    /// Stops the claiming of URLs.
    pub(crate) stop: CancellationToken,
    /// Cancelled once the claiming has stopped.
    pub(crate) has_stopped: CancellationToken,
}

impl Member {
    /// Creates an empty cache of crawls.
    pub(crate) fn no_crawls() -> Cache<CrawlRef, OpenCrawl> {
        Cache::new(MAX_CRAWLS)
    }

    /// Returns the settled terms of a crawl, looked up once, or the error if its records cannot be read.
    pub(crate) async fn crawl(&self, crawl: &CrawlRef) -> std::result::Result<Result<OpenCrawl>, Fatal> {
        if let Some(known) = self.crawls.get(crawl) {
            return Ok(Ok(known));
        }
        let looking = async || match self.look_up(crawl).await {
            Err(error) if error.kind == ErrorKind::Corrupt => Ok(Err(error)),
            known => known.map(Ok),
        };
        let known = self.health.insist(LOOKING_UP, looking).await?;
        if let Ok(known) = &known {
            self.crawls.insert(crawl.clone(), *known);
        }
        Ok(known)
    }

    async fn look_up(&self, crawl: &CrawlRef) -> Result<OpenCrawl> {
        let terms = self.records.terms(crawl).await?;
        let stats = self.records.crawl_stats(&crawl.id).await?;
        Ok(OpenCrawl { terms, started: stats.map_or_else(UnixMs::now, |stats| stats.started) })
    }

    /// Hands out a message that this worker holds.
    pub(crate) async fn hand_out(
        &self,
        message: Message,
        attempts: u32,
        starts: u32,
        is_beyond_limit: bool,
    ) -> std::result::Result<(), Fatal> {
        let crawl = match self.crawl(&message.crawl).await? {
            Ok(crawl) => crawl,
            // The crawl makes no progress until it is repaired; all others continue.
            Err(error) => {
                self.health.report_recent_failure(LOOKING_UP, &error, 2 * UNREADABLE_DELAY);
                let until = UnixMs::now().plus(UNREADABLE_DELAY);
                self.settle_internal(InternalMessage::Waits { message, until }).await;
                return Ok(());
            }
        };
        let claimed = Claimed { message, attempts, starts, is_beyond_limit, crawl };
        self.send_out(claimed);
        Ok(())
    }

    /// Hands out a claimed message. One that was handed out before and has not started keeps its turn.
    pub(crate) fn send_out(&self, claimed: Claimed) {
        let turn = self.held.turn(&claimed.message);
        let exit = if claimed.message.lane == Lane::Task { &self.exits.tasks } else { &self.exits.urls };
        // Closed only when the worker ends, which releases all messages that it holds.
        let _ = exit.send(Arriving { claimed, turn });
    }

    /// Passes a message on that the engine itself settles.
    pub(crate) async fn settle_internal(&self, own: InternalMessage) {
        // Closed only when the worker ends.
        let _ = self.own.send(own).await;
    }

    /// Returns when messages of a lane are acknowledged.
    pub(crate) fn acks(&self, message: &Message) -> Acks {
        self.settings.queues.acks(message.lane)
    }

    /// Whether it holds `worker.prefetch` messages for each queue of workers.
    pub(crate) fn is_full(&self) -> bool {
        self.held.len() >= usize::from(self.settings.worker.prefetch) * SourceQueue::ALL.len()
    }

    /// Interval after which a lease is extended; most pages are settled before.
    pub(crate) fn lease_period(&self) -> Duration {
        self.settings.recovery.lost_after / 12
    }

    /// Extends the leases of these messages. Returns, in order, which this worker still holds.
    pub(crate) async fn extend(&self, messages: &[Message]) -> std::result::Result<Vec<bool>, Fatal> {
        let Self { records, health, worker, .. } = self;
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        let keeping = async || one_each(records.extend(worker, messages).await?, messages.len(), "messages");
        health.insist("extending leases", keeping).await
    }
}

//! The engine over records and a broker.

use std::panic::resume_unwind;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trawl_common::health::Health;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Claimed, Engine, History, Joined, Joining, Opening, Pages, Result, Session};
use trawl_common::web::url::CanonicalUrl;

use crate::broker::Broker;
use crate::by_urgency::ByUrgency;
use crate::claiming::Claiming;
use crate::in_flight::InFlight;
use crate::member::Member;
use crate::outbox::{self, Tries};
use crate::own::Own;
use crate::records::Records;
use crate::session::LeasedSession;
use crate::upkeep;

/// What may wait to be settled by the engine itself.
const OWN_AHEAD: usize = 1024;

/// An engine over records and a broker.
pub struct Coordinator {
    records: Arc<dyn Records>,
    broker: Arc<dyn Broker>,
    pages: Arc<dyn Pages>,
    history: Option<Arc<dyn History>>,
}

impl Coordinator {
    /// The engine that carries URLs between these, and remembers pages in `pages`.
    pub fn new(records: Arc<dyn Records>, broker: Arc<dyn Broker>, pages: Arc<dyn Pages>) -> Self {
        Self { records, broker, pages, history: None }
    }

    /// The same, where crawls are also kept in `history`, if there is one.
    #[must_use]
    pub fn keeping(self, history: Option<Arc<dyn History>>) -> Self {
        Self { history, ..self }
    }
}

#[async_trait]
impl Engine for Coordinator {
    fn join(&self, Joining { worker, settings, health, requests, stop }: Joining) -> Joined {
        let (claimed, arriving) = mpsc::unbounded_channel();
        let (own, to_settle) = mpsc::channel(OWN_AHEAD);
        let member = Arc::new(Member {
            worker,
            settings,
            health,
            requests,
            records: Arc::clone(&self.records),
            broker: Arc::clone(&self.broker),
            pages: Arc::clone(&self.pages),
            history: self.history.clone(),
            in_flight: InFlight::default(),
            crawls: Member::no_crawls(),
            unproven: Default::default(),
            has_met_newer: Default::default(),
            claimed: ByUrgency::new(arriving).into(),
            own,
            stop: stop.child_token(),
            has_stopped: CancellationToken::new(),
        });
        let maintenance = Box::pin(maintain(Arc::clone(&member), claimed, to_settle));
        Joined { frontier: member, maintenance }
    }

    async fn open(&self, opening: Opening, health: Arc<Health>) -> Result<Box<dyn Session>> {
        let (records, broker) = (Arc::clone(&self.records), Arc::clone(&self.broker));
        Ok(Box::new(LeasedSession::open(records, broker, opening, health).await?))
    }

    async fn replay(&self, from: &CrawlRef, into: &CrawlRef, urls: &[CanonicalUrl]) -> Result<u64> {
        let messages = self.records.replay(from, into, urls).await?;
        let count = messages.len() as u64;
        outbox::send(&*self.records, &*self.broker, messages, Tries::One).await?;
        Ok(count)
    }
}

/// Runs what goes on beside a worker, until the task is ended. A panic of one part is the worker's.
async fn maintain(
    member: Arc<Member>,
    claimed: mpsc::UnboundedSender<Claimed>,
    to_settle: mpsc::Receiver<Own>,
) {
    let mut parts = JoinSet::new();
    let of = || Arc::clone(&member);
    let (claiming, settling, extending, sweeping) = (of(), of(), of(), of());
    parts.spawn(async move {
        // Also when it ends by a panic.
        let _has_stopped = claiming.has_stopped.clone().drop_guard();
        Claiming { member: &claiming, claimed }.run().await;
    });
    parts.spawn(async move { upkeep::settles_own(&settling, to_settle).await });
    parts.spawn(async move { upkeep::extends_leases(&extending).await });
    parts.spawn(async move { upkeep::sweeps(&sweeping).await });
    while let Some(ended) = parts.join_next().await {
        if let Err(panicked) = ended
            && let Ok(panic) = panicked.try_into_panic()
        {
            resume_unwind(panic);
        }
    }
}

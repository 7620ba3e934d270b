//! The engine over records and a broker.

use std::panic::resume_unwind;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use trawl_common::events::Event;
use trawl_common::frontier::Key;
use trawl_common::health::Health;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{
    CrawlSession, Engine, Fatal, History, Join, Joined, Joining, Opening, PageHistories, Result,
};

use crate::broker::Broker;
use crate::by_urgency::ByUrgency;
use crate::claiming::Claiming;
use crate::held_urls::HeldUrls;
use crate::internal_message::InternalMessage;
use crate::member::{Exits, Member};
use crate::outbox::{self, Tries};
use crate::records::Records;
use crate::session::LeasedSession;
use crate::upkeep;

/// Limit on messages waiting for the engine to settle them itself.
const MAX_OWN: usize = 1024;

/// The number of dead letters replayed in one step: each may be a task of a megabyte.
const REPLAY_BATCH: usize = 100;

/// An engine over records and a broker.
pub struct Coordinator {
    records: Arc<dyn Records>,
    broker: Arc<dyn Broker>,
    pages: Arc<dyn PageHistories>,
    history: Option<Arc<dyn History>>,
}

impl Coordinator {
    /// Returns an engine over these records and this broker, which remembers pages in `pages`.
    pub fn new(records: Arc<dyn Records>, broker: Arc<dyn Broker>, pages: Arc<dyn PageHistories>) -> Self {
        Self { records, broker, pages, history: None }
    }

    /// Returns this engine with crawls also stored in `history`, if there is one.
    #[must_use]
    pub fn with_history(self, history: Option<Arc<dyn History>>) -> Self {
        Self { history, ..self }
    }
}

impl Join for Coordinator {
    fn join(&self, Joining { worker, settings, health, requests, tasks, stop }: Joining) -> Joined {
        let (urls, arriving_urls) = mpsc::unbounded_channel();
        let (task, arriving_tasks) = mpsc::unbounded_channel();
        let (own, to_settle) = mpsc::channel(MAX_OWN);
        let member = Arc::new(Member {
            worker,
            settings,
            health,
            requests,
            records: Arc::clone(&self.records),
            broker: self.broker.for_worker(),
            pages: Arc::clone(&self.pages),
            history: self.history.clone(),
            held: HeldUrls::default(),
            crawls: Member::no_crawls(),
            unproven: Default::default(),
            has_met_newer: Default::default(),
            tasks,
            exits: Exits { urls, tasks: task },
            claimed: ByUrgency::new(arriving_urls).into(),
            claimed_tasks: ByUrgency::new(arriving_tasks).into(),
            own,
            stop: stop.child_token(),
            has_stopped: CancellationToken::new(),
        });
        let maintenance = Box::pin(maintain(Arc::clone(&member), to_settle));
        Joined { frontier: member, maintenance }
    }
}

#[async_trait]
impl Engine for Coordinator {
    async fn open(&self, opening: Opening, health: Arc<Health>) -> Result<Box<dyn CrawlSession>> {
        let (records, broker) = (Arc::clone(&self.records), Arc::clone(&self.broker));
        Ok(Box::new(LeasedSession::open(records, broker, opening, health).await?))
    }

    async fn replay(&self, from: &CrawlRef, into: &CrawlRef, keys: &[Key]) -> Result<u64> {
        let mut count = 0;
        // Also call it without keys: whether that crawl accepts any is part of the answer.
        let parts = keys.chunks(REPLAY_BATCH).chain(keys.is_empty().then_some(keys));
        for part in parts {
            let messages = self.records.replay(from, into, part).await?;
            count += messages.len() as u64;
            outbox::send(&*self.records, &*self.broker, messages, Tries::One).await?;
        }
        Ok(count)
    }

    async fn announce(&self, event: &Event) -> Result<()> {
        self.broker.announce(event).await
    }
}

/// Runs the background tasks of a worker until one of them fails. A panic in one of them is passed on.
async fn maintain(member: Arc<Member>, to_settle: mpsc::Receiver<InternalMessage>) -> Fatal {
    let mut parts = JoinSet::new();
    let of = || Arc::clone(&member);
    let (claiming, settling, extending, sweeping) = (of(), of(), of(), of());
    parts.spawn(async move {
        // Triggered on a panic too.
        let _has_stopped = claiming.has_stopped.clone().drop_guard();
        Claiming { member: &claiming }.run().await
    });
    parts.spawn(async move { upkeep::settle_internal(&settling, to_settle).await });
    parts.spawn(async move { upkeep::extend_leases(&extending).await });
    parts.spawn(async move { upkeep::sweep(&sweeping).await });
    while let Some(ended) = parts.join_next().await {
        match ended.map_err(JoinError::try_into_panic) {
            Ok(Err(fatal)) => return fatal,
            Err(Ok(panic)) => resume_unwind(panic),
            // Claiming ends when the worker stops, and cancelled parts only with this task.
            Ok(Ok(())) | Err(Err(_)) => {}
        }
    }
    unreachable!("leases are extended, and lost URLs looked for, until the task is cancelled")
}

//! The engine in one file. A record and its message are one row, so publishing, confirming, probing and
//! acknowledging are one transaction here.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::sleep;
use trawl_common::frontier::Key;
use trawl_common::health::Health;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{CrawlSession, Engine, Fatal, Join, Joined, Joining, Opening, Result};

use crate::embedded::admission::session::EmbeddedSession;
use crate::embedded::crawls::commands;
use crate::embedded::crawls::stats::LastBeat;
use crate::embedded::frontier::EmbeddedFrontier;
use crate::embedded::settle::ending::end_lapsed;
use crate::embedded::store::Store;

/// The engine of one state file.
pub(super) struct EmbeddedEngine {
    store: Arc<Store>,
    last_beat: Arc<LastBeat>,
}

impl EmbeddedEngine {
    /// Creates the engine on `store`.
    pub(super) fn new(store: Arc<Store>, last_beat: Arc<LastBeat>) -> Self {
        Self { store, last_beat }
    }
}

impl Join for EmbeddedEngine {
    /// No other program can submit anything here.
    fn join(&self, joining: Joining) -> Joined {
        let (health, pause) = (Arc::clone(&joining.health), joining.settings.recovery.lost_after / 12);
        let maintenance = Box::pin(maintain(Arc::clone(&self.store), health, pause));
        let frontier = EmbeddedFrontier::new(Arc::clone(&self.store), Arc::clone(&self.last_beat), joining);
        Joined { frontier: Arc::new(frontier), maintenance }
    }
}

#[async_trait]
impl Engine for EmbeddedEngine {
    async fn open(&self, opening: Opening, health: Arc<Health>) -> Result<Box<dyn CrawlSession>> {
        Ok(Box::new(EmbeddedSession::open(Arc::clone(&self.store), opening, health).await?))
    }

    async fn replay(&self, from: &CrawlRef, into: &CrawlRef, keys: &[Key]) -> Result<u64> {
        let (from, into, keys) = (from.clone(), into.clone(), keys.to_vec());
        self.store.call(move |db, memory| commands::replay(db, memory, &from, &into, &keys)).await
    }
}

/// Ends discovery for sessions that are gone. Records held by workers need no maintenance: they are held until the
/// worker leaves.
async fn maintain(store: Arc<Store>, health: Arc<Health>, pause: Duration) -> Fatal {
    loop {
        sleep(pause).await;
        if let Err(fatal) = health.insist("ending discovery", || store.call(end_lapsed)).await {
            return fatal;
        }
    }
}

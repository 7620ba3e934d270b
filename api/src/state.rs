//! The state that the handlers share.

use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::time::Instant;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::names::CrawlId;
use trawl_common::timetable::Timetable;

use crate::backend::{Backend, no_crawl};
use crate::limits::Rates;
use crate::permits::Permits;
use crate::problem::{Kind, Problem};
use crate::relay::Relay;
use crate::view::Known;
use crate::watch::Watchers;

/// The limits on calls of Git servers, by address.
pub(crate) struct Hooks {
    pub(crate) calls: Rates,
    /// Calls without a signature.
    pub(crate) strangers: Rates,
}

impl Default for Hooks {
    fn default() -> Self {
        Self { calls: Rates::of_hooks(), strangers: Rates::of_tokens() }
    }
}

/// The shared state of the handlers.
pub(crate) struct Api {
    pub(crate) backend: Backend,
    pub(crate) watchers: Arc<Watchers>,
    /// The runners' side of it.
    pub(crate) relay: Arc<Relay>,
    /// The limits on calls of Git servers.
    pub(crate) hooks: Hooks,
    /// The latest metrics, and when they were rendered. Concurrent requests wait for the same ones.
    pub(crate) metrics: Mutex<Option<(Instant, String)>>,
    /// The schedules known at the last request.
    pub(crate) timetable: Mutex<Timetable>,
    /// Permits for readers of items.
    pub(crate) readers: Arc<Permits>,
    /// Permits for followers of the log.
    pub(crate) followers: Arc<Permits>,
    /// Permits for searches through all dead letters, or much of the log.
    pub(crate) searchers: Arc<Permits>,
    /// Permits for the examination of spiders' texts.
    pub(crate) examiners: Arc<Permits>,
}

impl Api {
    /// Returns a crawl, which must be known.
    pub(crate) async fn known(&self, id: &CrawlId) -> Result<Known, Problem> {
        self.backend.known(id).await?.ok_or_else(|| no_crawl(id))
    }

    /// Returns the stats of a crawl, which must have begun.
    pub(crate) async fn begun(&self, id: &CrawlId) -> Result<CrawlStats, Problem> {
        match self.backend.stats.crawl_stats(id).await? {
            Some(stats) => Ok(stats),
            None => {
                let status = self.known(id).await?.stats.status;
                let detail = format!("crawl {id} is {status}, and nothing of it has begun");
                Err(Problem::new(Kind::Conflict, detail))
            }
        }
    }
}

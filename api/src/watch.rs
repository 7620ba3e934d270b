//! Watches crawls: each is read once a second, however many callers wait for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::debug;
use trawl_common::names::CrawlId;

use crate::backend::{Backend, no_crawl};
use crate::identity::Identity;
use crate::permits::{Permit, Permits};
use crate::problem::Problem;
use crate::view::Known;

/// Interval at which a crawl is read.
const READ_INTERVAL: Duration = Duration::from_secs(1);

/// The last state of a crawl; `None` before the first read.
type Seen = Option<Result<Known, Problem>>;

/// The crawls that are watched.
pub(crate) struct Watchers {
    backend: Backend,
    permits: Arc<Permits>,
    watched: Mutex<HashMap<CrawlId, Arc<watch::Sender<Seen>>>>,
    stop: CancellationToken,
}

/// One caller's view of a crawl.
pub(crate) struct Watch {
    seen: watch::Receiver<Seen>,
    stop: CancellationToken,
    _permit: Permit,
}

impl Watchers {
    pub(crate) fn new(backend: Backend, stop: CancellationToken) -> Arc<Self> {
        let permits = Permits::new(256, 64, "waits for crawls");
        Arc::new(Self { backend, permits, watched: Mutex::default(), stop })
    }

    /// Cancelled when all waiting callers are to be released.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Watches a crawl for a caller.
    pub(crate) fn watch(self: &Arc<Self>, identity: &Identity, id: &CrawlId) -> Result<Watch, Problem> {
        let permit = self.permits.take(identity)?;
        let mut watched = self.watched.lock();
        let seen = match watched.get(id) {
            Some(sender) => sender.subscribe(),
            None => {
                let (sender, seen) = watch::channel(None);
                let sender = Arc::new(sender);
                watched.insert(id.clone(), Arc::clone(&sender));
                tokio::spawn(Arc::clone(self).look(id.clone(), sender));
                seen
            }
        };
        // The last state is new to this caller.
        let mut seen = seen;
        seen.mark_changed();
        Ok(Watch { seen, stop: self.stop.clone(), _permit: permit })
    }

    /// Reads a crawl until it is over, or has no watchers.
    async fn look(self: Arc<Self>, id: CrawlId, sender: Arc<watch::Sender<Seen>>) {
        let mut ticks = tokio::time::interval(READ_INTERVAL);
        loop {
            ticks.tick().await;
            let seen = match self.backend.known(&id).await {
                Ok(Some(known)) => Some(Ok(known)),
                Ok(None) => Some(Err(no_crawl(&id))),
                Err(error) if error.is_temporary() => {
                    debug!(crawl = %id, %error, "cannot look at a crawl that callers wait for");
                    None
                }
                Err(error) => Some(Err(error.into())),
            };
            let is_last = seen.as_ref().is_some_and(|seen| seen.as_ref().map_or(true, Known::is_over));
            if let Some(seen) = seen {
                sender.send_if_modified(|before| note(before, seen));
            }
            let mut watched = self.watched.lock();
            if is_last || sender.receiver_count() == 0 {
                watched.remove(&id);
                return;
            }
        }
    }
}

impl Watch {
    /// Waits for the next change of the crawl; `None` when there will be no more.
    pub(crate) async fn next(&mut self) -> Option<Result<Known, Problem>> {
        loop {
            self.stop.run_until_cancelled(self.seen.changed()).await?.ok()?;
            if let Some(seen) = &*self.seen.borrow_and_update() {
                return Some(seen.clone());
            }
        }
    }
}

/// Stores a state, and returns whether it has changed. The elapsed time alone is no change.
fn note(before: &mut Seen, seen: Result<Known, Problem>) -> bool {
    let is_news = match (&*before, &seen) {
        (Some(Ok(before)), Ok(seen)) => before.timeless() != seen.timeless(),
        _ => true,
    };
    *before = Some(seen);
    is_news
}

//! Leave to ask a host, and the place that goes with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::debug;
use trawl_common::gcra::Wish;
use trawl_common::host::HostKey;
use trawl_common::ports::{Hosts, Visit};

use crate::Shared;

/// Leave to ask a host now. Dropped, it frees the place among the requests under way.
pub(crate) struct Ticket {
    /// The slot is void after this; without a rate there is no slot.
    void_after: Option<Instant>,
    /// With a limit of requests under way: the name of the place, and who frees it.
    place: Option<(u64, Arc<Places>)>,
}

impl Ticket {
    /// For a wish that was granted at this moment, to a job that missed its slot so many times before.
    pub(crate) fn new(shared: &Shared, key: HostKey, wish: &Wish, misses: u32) -> Self {
        let Wish { pace, token, .. } = *wish;
        let place = (pace.concurrency > 0).then(|| {
            shared.places.enter(Visit { key, token });
            (token, Arc::clone(&shared.places))
        });
        let void_after = pace.grace(misses).map(|grace| Instant::now() + grace);
        Self { void_after, place }
    }

    /// Whether its slot has passed unused: then another has to be asked for.
    pub(crate) fn is_void(&self) -> bool {
        self.void_after.is_some_and(|instant| Instant::now() > instant)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some((token, places)) = self.place.take() {
            places.leave(token);
        }
    }
}

/// After how long a place is free that its worker neither leaves nor keeps: as a URL that it holds.
pub(crate) fn lapse(shared: &Shared) -> Duration {
    shared.settings.recovery.patience / 4
}

/// The places of requests under way, and of those that are over and still counted.
#[derive(Default)]
pub(crate) struct Places {
    lists: Mutex<Lists>,
    some_over: Notify,
}

#[derive(Default)]
struct Lists {
    under_way: HashMap<u64, (Visit, Instant)>,
    over: Vec<Visit>,
}

impl Places {
    fn enter(&self, visit: Visit) {
        self.lists().under_way.insert(visit.token, (visit, Instant::now()));
    }

    fn leave(&self, token: u64) {
        let mut lists = self.lists();
        if let Some((visit, _)) = lists.under_way.remove(&token) {
            lists.over.push(visit);
            self.some_over.notify_one();
        }
    }

    /// What has been under way for at least `age`.
    pub(crate) fn older_than(&self, age: Duration) -> Vec<Visit> {
        let lists = self.lists();
        let old = lists.under_way.values().filter(|(_, since)| since.elapsed() >= age);
        old.map(|(visit, _)| visit.clone()).collect()
    }

    /// Frees places, many at a time, until the task is ended.
    pub(crate) async fn freeing(&self, hosts: &dyn Hosts) {
        loop {
            self.some_over.notified().await;
            self.free(hosts).await;
        }
    }

    /// Frees what is over by now. What fails lapses.
    pub(crate) async fn free(&self, hosts: &dyn Hosts) {
        let over = std::mem::take(&mut self.lists().over);
        if !over.is_empty()
            && let Err(error) = hosts.leave(&over).await
        {
            debug!(%error, "places not freed; they lapse");
        }
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Leave to ask a host, and the place that goes with it.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::debug;

use crate::gcra::Wish;
use crate::host::HostKey;
use crate::ports::{Ended, Hosts, Visit};

/// Leave to ask a host now. Dropped, it frees the place among the requests under way.
pub struct Ticket {
    /// The slot is void after this.
    void_after: Instant,
    visit: Visit,
    has_place: bool,
    is_welcome: bool,
    places: Arc<Places>,
}

impl Ticket {
    /// For a wish that was granted at this moment, to a job that missed its slot so many times before.
    pub fn new(places: &Arc<Places>, key: HostKey, wish: &Wish, misses: u32) -> Self {
        let Wish { pace, token, .. } = *wish;
        let visit = Visit { key, token };
        let has_place = pace.concurrency > 0;
        if has_place {
            places.enter(visit.clone());
        }
        let void_after = Instant::now() + pace.grace(misses);
        Self { void_after, visit, has_place, is_welcome: false, places: Arc::clone(places) }
    }

    /// Whether its slot has passed unused: then another has to be asked for.
    pub fn is_void(&self) -> bool {
        Instant::now() > self.void_after
    }

    /// The request is over. Its place is free at once if the host answered as it should. Of one that did not, the ticket comes
    /// back: its place stays taken until everyone knows whether the host wants to be left alone.
    pub fn end(mut self, is_welcome: bool) -> Option<Self> {
        self.is_welcome = is_welcome;
        (!is_welcome).then_some(self)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.places.leave(&self.visit, self.has_place, self.is_welcome);
    }
}

/// The places of a process's requests under way, and of those that are over and still counted.
#[derive(Default)]
pub struct Places {
    lists: Mutex<Lists>,
    some_over: Notify,
}

#[derive(Default)]
struct Lists {
    under_way: HashMap<u64, (Visit, Instant)>,
    over: Vec<Ended>,
    /// The hosts that wanted to be left alone, and have not been seen to answer since.
    refusing: HashSet<HostKey>,
}

impl Places {
    fn enter(&self, visit: Visit) {
        self.lists().under_way.insert(visit.token, (visit, Instant::now()));
    }

    fn leave(&self, visit: &Visit, has_place: bool, is_welcome: bool) {
        let mut lists = self.lists();
        lists.under_way.remove(&visit.token);
        // Without a place there is nothing to free, but a streak of refusals may be over.
        let ends_streak = is_welcome && lists.refusing.remove(&visit.key);
        if has_place || ends_streak {
            lists.over.push(Ended { visit: visit.clone(), is_welcome });
            self.some_over.notify_one();
        }
    }

    /// Notes that a host wants to be left alone.
    pub fn refused(&self, key: &HostKey) {
        self.lists().refusing.insert(key.clone());
    }

    /// What has been under way for at least `age`.
    pub fn older_than(&self, age: Duration) -> Vec<Visit> {
        let lists = self.lists();
        let old = lists.under_way.values().filter(|(_, since)| since.elapsed() >= age);
        old.map(|(visit, _)| visit.clone()).collect()
    }

    /// Frees places, many at a time, until the task is ended.
    pub async fn freeing(&self, hosts: &dyn Hosts) -> Infallible {
        loop {
            self.some_over.notified().await;
            self.free(hosts).await;
        }
    }

    /// Frees what is over by now. What cannot be freed lapses.
    pub async fn free(&self, hosts: &dyn Hosts) {
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

//! Who holds which record, and who is alive.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use trawl_common::lane::Lane;
use trawl_common::names::WorkerId;

/// The records in workers' hands.
#[derive(Default)]
pub(super) struct Hands {
    held: HashMap<i64, Held>,
    alive: HashMap<WorkerId, Instant>,
}

struct Held {
    by: WorkerId,
    lane: Lane,
}

impl Hands {
    /// Notes that `worker` lives for `ttl` from now.
    pub(super) fn beat(&mut self, worker: WorkerId, ttl: Duration) {
        self.alive.insert(worker, Instant::now() + ttl);
    }

    /// Gives record `id` to `worker`.
    pub(super) fn hold(&mut self, id: i64, lane: Lane, worker: &WorkerId) {
        self.held.insert(id, Held { by: worker.clone(), lane });
    }

    /// Takes record `id` out of whosever hands.
    pub(super) fn let_go(&mut self, id: i64) {
        self.held.remove(&id);
    }

    /// Takes every record out of every hand.
    pub(super) fn drop_all(&mut self) {
        self.held.clear();
    }

    /// Whether anyone holds record `id`, dead or alive.
    pub(super) fn is_held(&self, id: i64) -> bool {
        self.held.contains_key(&id)
    }

    /// Whether `worker` holds record `id`.
    pub(super) fn is_held_by(&self, id: i64, worker: &WorkerId) -> bool {
        self.held.get(&id).is_some_and(|held| held.by == *worker)
    }

    /// Whether a worker other than `worker`, and alive, holds record `id`.
    pub(super) fn is_held_against(&self, id: i64, worker: &WorkerId) -> bool {
        self.held.get(&id).is_some_and(|held| held.by != *worker && self.is_alive(&held.by))
    }

    /// The records of those whose heartbeat has lapsed; these are forgotten.
    pub(super) fn lapsed(&mut self) -> Vec<(i64, Lane)> {
        let now = Instant::now();
        self.alive.retain(|_, until| *until > now);
        let dead = self.held.iter().filter(|(_, held)| !self.alive.contains_key(&held.by));
        dead.map(|(id, held)| (*id, held.lane)).collect()
    }

    fn is_alive(&self, worker: &WorkerId) -> bool {
        self.alive.get(worker).is_some_and(|until| *until > Instant::now())
    }
}

//! Who holds which record.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use trawl_common::lane::Lane;
use trawl_common::names::WorkerId;

/// The records in workers' hands, each until its holder has neither heard nor kept it for a while.
pub(super) struct Hands {
    held: HashMap<i64, Held>,
    possession: Duration,
}

struct Held {
    by: WorkerId,
    lane: Lane,
    until: Instant,
    /// The crawl in which its start has been counted, if it has.
    started: Option<i64>,
}

impl Hands {
    /// Empty hands, which keep a record for `possession`.
    pub(super) fn new(possession: Duration) -> Self {
        Self { held: HashMap::new(), possession }
    }

    /// Gives record `id` to `worker`.
    pub(super) fn hold(&mut self, id: i64, lane: Lane, worker: &WorkerId) {
        let until = Instant::now() + self.possession;
        self.held.insert(id, Held { by: worker.clone(), lane, until, started: None });
    }

    /// Prolongs the possession of record `id`.
    pub(super) fn keep(&mut self, id: i64) {
        let until = Instant::now() + self.possession;
        if let Some(held) = self.held.get_mut(&id) {
            held.until = until;
        }
    }

    /// Notes that the start of record `id` of the crawl in row `crawl` has been counted.
    pub(super) fn start(&mut self, id: i64, crawl: i64) {
        if let Some(held) = self.held.get_mut(&id) {
            held.started = Some(crawl);
        }
    }

    /// How many records of a crawl have started and are still in hand.
    pub(super) fn started_of(&self, crawl: i64) -> usize {
        self.held.values().filter(|held| held.started == Some(crawl)).count()
    }

    /// Whether the start of record `id` has been counted since it was taken.
    pub(super) fn has_started(&self, id: i64) -> bool {
        self.held.get(&id).is_some_and(|held| held.started.is_some())
    }

    /// Takes record `id` out of whosever hands.
    pub(super) fn let_go(&mut self, id: i64) {
        self.held.remove(&id);
    }

    /// Takes every record out of every hand.
    pub(super) fn drop_all(&mut self) {
        self.held.clear();
    }

    /// Whether anyone holds record `id`, or did and has not been swept up since.
    pub(super) fn is_held(&self, id: i64) -> bool {
        self.held.contains_key(&id)
    }

    /// Whether `worker` holds record `id`: also beyond its time, as long as nobody has taken it.
    pub(super) fn is_held_by(&self, id: i64, worker: &WorkerId) -> bool {
        self.held.get(&id).is_some_and(|held| held.by == *worker)
    }

    /// Whether a worker other than `worker` holds record `id` and keeps it.
    pub(super) fn is_held_against(&self, id: i64, worker: &WorkerId) -> bool {
        self.held.get(&id).is_some_and(|held| held.by != *worker && held.until > Instant::now())
    }

    /// The records that their holders no longer keep.
    pub(super) fn lapsed(&self) -> Vec<(i64, Lane)> {
        let now = Instant::now();
        let lapsed = self.held.iter().filter(|(_, held)| held.until <= now);
        lapsed.map(|(id, held)| (*id, held.lane)).collect()
    }
}

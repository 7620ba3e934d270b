//! The holders of records.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use trawl_common::frontier::State;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::names::WorkerId;
use trawl_common::time::UnixMs;

use crate::embedded::store::transactional_map::{self, TransactionalMap};

/// A worker that has joined.
pub(crate) struct Holder {
    /// Its name.
    pub(crate) worker: WorkerId,
    /// Number of records of each queue that it holds.
    held: [AtomicUsize; SourceQueue::ALL.len()],
    has_left: AtomicBool,
}

impl Holder {
    /// Creates a worker that holds nothing yet.
    pub(crate) fn new(worker: WorkerId) -> Self {
        Self { worker, held: Default::default(), has_left: AtomicBool::new(false) }
    }

    /// Notes that it takes no more.
    pub(crate) fn leave(&self) {
        self.has_left.store(true, Ordering::Relaxed);
    }

    /// Returns whether it takes no more.
    pub(crate) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Relaxed)
    }

    /// Returns the number of records of a queue that it holds.
    pub(crate) fn holds_of(&self, source: SourceQueue) -> usize {
        self.held[source as usize].load(Ordering::Relaxed)
    }

    /// Returns the number of records that it holds.
    pub(crate) fn holds(&self) -> usize {
        SourceQueue::ALL.into_iter().map(|source| self.holds_of(source)).sum()
    }
}

/// The records that workers hold, and those that count against their crawl's `max_pages`. In a new process there
/// are none.
///
/// A worker holds a record until it settles it, gives it back, or leaves. There are no expiring leases, because
/// within one process no worker is lost.
#[derive(Default)]
pub(crate) struct Holdings {
    held: TransactionalMap<i64, Held>,
    /// The crawl of each record that has begun.
    begun: TransactionalMap<i64, i64>,
}

/// A point to which changes can be rolled back.
#[derive(Clone, Copy)]
pub(crate) struct Savepoint {
    held: transactional_map::Savepoint,
    begun: transactional_map::Savepoint,
}

#[derive(Clone)]
struct Held {
    place: Arc<Place>,
    lane: Lane,
    has_started: bool,
}

/// One of the records that a worker may hold. The capacity is free again when this is dropped: once it is final
/// that the worker no longer holds the record.
struct Place {
    holder: Arc<Holder>,
    source: SourceQueue,
}

impl Place {
    fn take(source: SourceQueue, holder: &Arc<Holder>) -> Self {
        holder.held[source as usize].fetch_add(1, Ordering::Relaxed);
        Self { holder: Arc::clone(holder), source }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.holder.held[self.source as usize].fetch_sub(1, Ordering::Relaxed);
    }
}

impl Holdings {
    /// Returns the state of record `id`, if anyone holds it.
    pub(crate) fn state(&self, id: i64, now: UnixMs) -> Option<State> {
        let Held { place, has_started, .. } = self.held.get(id)?;
        Some(State::Held { by: place.holder.worker.clone(), since: now, has_started: *has_started })
    }

    /// Gives record `id`, which came through `source`, to a worker.
    pub(crate) fn give(&mut self, id: i64, (source, lane): (SourceQueue, Lane), to: &Arc<Holder>) {
        let place = Arc::new(Place::take(source, to));
        self.held.insert(id, Held { place, lane, has_started: false });
    }

    /// Notes that the start of record `id`, which is held, has been counted.
    pub(crate) fn start(&mut self, id: i64) {
        if let Some(held) = self.held.get(id).cloned() {
            self.held.insert(id, Held { has_started: true, ..held });
        }
    }

    /// Takes record `id` from its holder.
    pub(crate) fn let_go(&mut self, id: i64) {
        self.held.remove(id);
    }

    /// Notes whether record `id` of the crawl in row `crawl` has begun.
    pub(crate) fn set_begun(&mut self, id: i64, crawl: i64, has_begun: bool) {
        if has_begun {
            self.begun.insert(id, crawl);
        } else {
            self.begun.remove(id);
        }
    }

    /// Returns whether record `id` has begun.
    pub(crate) fn has_begun(&self, id: i64) -> bool {
        self.begun.get(id).is_some()
    }

    /// Returns the number of records of a crawl that have begun.
    pub(crate) fn begun_of(&self, crawl: i64) -> u64 {
        self.begun.iter().filter(|(_, of)| **of == crawl).count() as u64
    }

    /// Notes that there is no record `id` any more.
    pub(crate) fn forget(&mut self, id: i64) {
        self.let_go(id);
        self.begun.remove(id);
    }

    /// Returns whether anyone holds record `id`.
    pub(crate) fn is_held(&self, id: i64) -> bool {
        self.held.get(id).is_some()
    }

    /// Returns the number of held records of each queue, by the state of their rows: parked ones keep their due
    /// time until they start.
    pub(crate) fn rows(&self) -> [u64; SourceQueue::ALL.len()] {
        let mut rows = [0; SourceQueue::ALL.len()];
        for (_, Held { place, lane, has_started }) in self.held.iter() {
            let source = if place.source == SourceQueue::Due && !has_started {
                SourceQueue::Due
            } else {
                SourceQueue::from(*lane)
            };
            rows[source as usize] += 1;
        }
        rows
    }

    /// Returns the records that a worker holds, each with its lane.
    pub(crate) fn of(&self, holder: &Arc<Holder>) -> Vec<(i64, Lane)> {
        let held = self.held.iter().filter(|(_, held)| Arc::ptr_eq(&held.place.holder, holder));
        held.map(|(id, held)| (id, held.lane)).collect()
    }

    /// Returns a savepoint of the current state.
    pub(crate) fn savepoint(&self) -> Savepoint {
        Savepoint { held: self.held.savepoint(), begun: self.begun.savepoint() }
    }

    /// Rolls back all changes since `savepoint`.
    pub(crate) fn roll_back_to(&mut self, savepoint: Savepoint) {
        self.held.roll_back_to(savepoint.held);
        self.begun.roll_back_to(savepoint.begun);
    }

    /// Makes all changes final.
    pub(crate) fn commit(&mut self) {
        self.held.commit();
        self.begun.commit();
    }
}

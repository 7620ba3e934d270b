//! Who holds which record.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use trawl_common::frontier::State;
use trawl_common::frontier::lane::Lane;
use trawl_common::names::WorkerId;
use trawl_common::time::UnixMs;

/// The records in workers' hands, and those that take a place of their crawl's `max_pages`. A new process knows of none.
///
/// Leases run by monotonic time: whoever sets the clock takes nothing out of anyone's hands.
#[derive(Default)]
pub(super) struct Hands {
    held: HashMap<i64, Held>,
    /// The crawl of each record that has begun.
    begun: HashMap<i64, i64>,
}

struct Held {
    by: WorkerId,
    lane: Lane,
    since: Instant,
    has_started: bool,
}

impl Held {
    fn state(&self, now: UnixMs) -> State {
        let since = UnixMs(now.0.saturating_sub(self.since.elapsed().as_millis() as u64));
        State::Held { by: self.by.clone(), since, has_started: self.has_started }
    }
}

impl Hands {
    /// The state of record `id`, if anyone holds it, or did and has not been swept up since.
    pub(super) fn state(&self, id: i64, now: UnixMs) -> Option<State> {
        Some(self.held.get(&id)?.state(now))
    }

    /// Gives record `id` to a worker, who extended its lease so long ago.
    pub(super) fn hold(&mut self, id: i64, lane: Lane, by: &WorkerId, has_started: bool, ago: Duration) {
        let now = Instant::now();
        let since = now.checked_sub(ago).unwrap_or(now);
        self.held.insert(id, Held { by: by.clone(), lane, since, has_started });
    }

    /// Takes record `id` out of whosever hands.
    pub(super) fn let_go(&mut self, id: i64) {
        self.held.remove(&id);
    }

    /// Notes whether record `id` of the crawl in row `crawl` has begun.
    pub(super) fn set_begun(&mut self, id: i64, crawl: i64, has_begun: bool) {
        if has_begun {
            self.begun.insert(id, crawl);
        } else {
            self.begun.remove(&id);
        }
    }

    /// Whether record `id` has begun.
    pub(super) fn has_begun(&self, id: i64) -> bool {
        self.begun.contains_key(&id)
    }

    /// How many records of a crawl have begun.
    pub(super) fn begun_of(&self, crawl: i64) -> u64 {
        self.begun.values().filter(|of| **of == crawl).count() as u64
    }

    /// Notes that there is no record `id` any more.
    pub(super) fn forget(&mut self, id: i64) {
        self.let_go(id);
        self.begun.remove(&id);
    }

    /// Whether anyone holds record `id`, or did and has not been swept up since.
    pub(super) fn is_held(&self, id: i64) -> bool {
        self.held.contains_key(&id)
    }

    /// The records in hand.
    pub(super) fn all(&self, now: UnixMs) -> impl Iterator<Item = (i64, Lane, State)> {
        self.held.iter().map(move |(id, held)| (*id, held.lane, held.state(now)))
    }
}

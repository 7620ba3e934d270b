//! The record of a URL in a crawl.

use std::time::Duration;

use crate::frontier::lane::Lane;
use crate::names::WorkerId;
use crate::time::UnixMs;

/// The state of a URL in one crawl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UrlState {
    /// Its spider never saw it, or the store has forgotten it.
    Unseen,
    /// It has no terminal state yet.
    Pending(Record),
    /// It has its terminal state, or belongs to another crawl of its spider.
    Ended,
}

/// A URL without a terminal state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The state of the record.
    pub state: State,
    /// Its lane.
    pub lane: Lane,
    /// The time from which it is no longer worth fetching.
    pub deadline: Option<UnixMs>,
    /// Failed attempts so far.
    pub attempts: u32,
    /// Number of starts without an end so far.
    pub starts: u32,
    /// The workers of which one of these starts was counted because their lease lapsed.
    pub lapsed: Vec<WorkerId>,
    /// Whether it counts against the pages that `max_pages` leaves: it was started, and neither snoozed nor given
    /// back since. It still counts when its worker dies, and after another one takes it over.
    pub has_begun: bool,
}

/// The state of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Its message is not confirmed yet.
    New {
        /// The time of that state.
        since: UnixMs,
    },
    /// Its message is in the queue of its lane.
    Queued {
        /// The time of that state.
        since: UnixMs,
    },
    /// Its message comes back later.
    Parked {
        /// The time when it comes back.
        until: UnixMs,
        /// When that message was sent, if it is not confirmed yet.
        unconfirmed: Option<UnixMs>,
        /// Whether it waits only because its crawl is paused. It is sent again when the crawl resumes; until then
        /// its message comes back now and then.
        in_pause: bool,
    },
    /// A worker holds it.
    Held {
        /// The worker.
        by: WorkerId,
        /// When its lease was last extended.
        since: UnixMs,
        /// Whether its start has been counted since the worker took it.
        has_started: bool,
    },
}

impl Record {
    /// Returns the record of a URL of which nothing else is known.
    pub fn new(state: State, lane: Lane, deadline: Option<UnixMs>) -> Self {
        Self { state, lane, deadline, attempts: 0, starts: 0, lapsed: Vec::new(), has_begun: false }
    }

    /// Returns whether `worker` holds it, even beyond its lease, as long as nobody else has taken it.
    pub(super) fn is_held_by(&self, worker: &WorkerId) -> bool {
        matches!(&self.state, State::Held { by, .. } if by == worker)
    }

    /// Takes it from its holder, whose lease has lapsed: the holder is dead, or stalled.
    pub(super) fn lapse(&mut self) {
        if let State::Held { by, has_started: true, .. } = &self.state
            && !self.lapsed.contains(by)
        {
            self.lapsed.push(by.clone());
        }
    }

    /// Uncounts the start of a worker that lost the record because its lease lapsed, but is alive: that start is
    /// no step towards poison.
    pub(super) fn withdraw_start(&mut self, worker: &WorkerId) {
        if self.starts > 0
            && let Some(at) = self.lapsed.iter().position(|by| by == worker)
        {
            self.lapsed.remove(at);
            self.starts -= 1;
        }
    }

    /// Ends the start of a record that its holder snoozes or gives back. If it had not been started, the earlier
    /// starts stay counted, because they had no end.
    pub(super) fn end_start(&mut self) {
        if matches!(self.state, State::Held { has_started: true, .. }) {
            self.starts = 0;
        }
        self.has_begun = false;
    }
}

impl State {
    /// Returns the state of a record that is parked by a pause, with a message that comes back at `until`.
    pub(super) fn let_go(until: UnixMs) -> Self {
        Self::Parked { until, unconfirmed: None, in_pause: true }
    }

    /// Returns whether its holder has neither extended its lease nor settled it within `possession`.
    pub(crate) fn has_lapsed(&self, now: UnixMs, possession: Duration) -> bool {
        matches!(self, Self::Held { since, .. } if since.plus(possession) < now)
    }
}

/// Maximum time before it is due at which a parked URL may be taken: clocks differ a little, and the worker waits
/// for the rest.
pub(super) const EARLY: Duration = Duration::from_secs(5);

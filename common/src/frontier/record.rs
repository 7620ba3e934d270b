//! What is known of a URL in a crawl.

use std::time::Duration;

use crate::frontier::lane::Lane;
use crate::names::WorkerId;
use crate::time::UnixMs;

/// A URL, as one crawl knows it.
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
    /// Where it is.
    pub state: State,
    /// Its lane.
    pub lane: Lane,
    /// When it is no longer worth fetching.
    pub deadline: Option<UnixMs>,
    /// Failed attempts so far.
    pub attempts: u32,
    /// Starts so far that had no end.
    pub starts: u32,
    /// The workers whose start is among them because their lease lapsed.
    pub lapsed: Vec<WorkerId>,
    /// Whether it takes one of the places that `max_pages` leaves: it was started, and neither put aside nor given back since.
    /// It keeps its place when its worker dies, for whoever takes it over.
    pub has_begun: bool,
}

/// Where a record is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Its message is not confirmed yet.
    New {
        /// Since when.
        since: UnixMs,
    },
    /// Its message is in the queue of its lane.
    Queued {
        /// Since when.
        since: UnixMs,
    },
    /// Its message comes back later.
    Parked {
        /// When.
        until: UnixMs,
        /// Since when that message waits to be confirmed, if it does.
        unconfirmed: Option<UnixMs>,
        /// Whether it waits only because its crawl is paused. It is sent again as soon as the crawl goes on; until then its message comes
        /// back now and then.
        in_pause: bool,
    },
    /// A worker holds it.
    Held {
        /// Which.
        by: WorkerId,
        /// When its lease was extended last.
        since: UnixMs,
        /// Whether its start has been counted since the worker took it.
        has_started: bool,
    },
}

impl Record {
    /// The record of a URL of which nothing else is known.
    pub fn new(state: State, lane: Lane, deadline: Option<UnixMs>) -> Self {
        Self { state, lane, deadline, attempts: 0, starts: 0, lapsed: Vec::new(), has_begun: false }
    }

    /// Whether `worker` holds it: also beyond its lease, as long as nobody has taken it.
    pub(super) fn is_held_by(&self, worker: &WorkerId) -> bool {
        matches!(&self.state, State::Held { by, .. } if by == worker)
    }

    /// Its holder loses it, as its lease has lapsed: the holder is dead, or stands still.
    pub(super) fn lapse(&mut self) {
        if let State::Held { by, has_started: true, .. } = &self.state
            && !self.lapsed.contains(by)
        {
            self.lapsed.push(by.clone());
        }
    }

    /// A worker that had lost it because its lease lapsed lives after all: its start is no step towards poison.
    pub(super) fn withdraw_start(&mut self, worker: &WorkerId) {
        if self.starts > 0
            && let Some(at) = self.lapsed.iter().position(|by| by == worker)
        {
            self.lapsed.remove(at);
            self.starts -= 1;
        }
    }

    /// Its holder puts it aside or gives it back. The start that led here has ended; what had not started keeps the starts that
    /// it had, for they had no end.
    pub(super) fn end_start(&mut self) {
        if matches!(self.state, State::Held { has_started: true, .. }) {
            self.starts = 0;
        }
        self.has_begun = false;
    }
}

impl State {
    /// Put aside in a pause, by a message that comes back then.
    pub(super) fn let_go(until: UnixMs) -> Self {
        Self::Parked { until, unconfirmed: None, in_pause: true }
    }

    /// Whether its holder has neither extended its lease nor settled it within `possession`.
    pub fn has_lapsed(&self, now: UnixMs, possession: Duration) -> bool {
        matches!(self, Self::Held { since, .. } if since.plus(possession) < now)
    }
}

/// How much earlier than it is due a parked URL may be taken: clocks differ a little, and its worker waits for the rest.
pub(super) const EARLY: Duration = Duration::from_secs(5);

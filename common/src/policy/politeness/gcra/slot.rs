//! Requests for slots, and the answers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Pace, from_ms};
use crate::time::UnixMs;

/// A request for a slot of a host's schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotRequest {
    /// The pace of the host.
    pub pace: Pace,
    /// The slot that was reserved for this URL earlier, if any.
    pub held: Option<UnixMs>,
    /// Its standing if the slot is too far ahead to be reserved.
    pub standing: Standing,
    /// The time from which it is no longer worth fetching.
    pub deadline: Option<UnixMs>,
    /// The id of the request among those in flight.
    pub token: u64,
    /// Time after which it no longer counts as in flight, unless it is extended: its worker must be gone.
    pub lapse: Duration,
}

/// The relation of a URL to the waitlist of those whose slots are too far ahead to be reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It joins the end of the waitlist.
    New,
    /// It has a position there, for this instant.
    Waitlisted(UnixMs),
    /// It stays off the waitlist, and comes back when its slot may be reserved.
    Aside,
}

impl Standing {
    /// Returns the standing of a URL with this position in the waitlist, or none yet.
    pub fn new(turn: Option<UnixMs>) -> Self {
        turn.map_or(Self::New, Self::Waitlisted)
    }

    pub(super) fn turn(self) -> Option<u64> {
        if let Self::Waitlisted(turn) = self { Some(from_ms(turn)) } else { None }
    }
}

/// The answer to a request for a slot. Instants are on the clock of the store of the schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Slot {
    /// Ask the host now: the slot is used up by this answer, and the request is in flight until
    /// [`Schedule::leave`](super::Schedule::leave).
    Now,
    /// Reserved: come back with it after this wait, at this instant.
    Reserved {
        /// The wait from now.
        wait: Duration,
        /// The instant itself, to carry along.
        at: UnixMs,
    },
    /// Too far ahead to reserve: come back after this wait, or earlier to see whether the waitlist is still there.
    Later {
        /// The wait from now.
        wait: Duration,
        /// Its position in the waitlist, to carry along; off the waitlist, its slot as of now.
        turn: UnixMs,
    },
    /// Its slot would come after its deadline. Nothing is reserved.
    TooLate,
    /// The host must not be asked at all.
    Blocked,
}

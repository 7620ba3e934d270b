//! Requests for slots, and the answers.

use std::time::Duration;

use super::{Pace, from_ms};
use crate::time::UnixMs;

/// A request for a slot of a host's schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRequest {
    /// How the host is to be asked.
    pub pace: Pace,
    /// The slot that was reserved for this URL earlier, if one was.
    pub held: Option<UnixMs>,
    /// What to do if its slot is too far ahead to be reserved.
    pub standing: Standing,
    /// When it is no longer worth fetching.
    pub deadline: Option<UnixMs>,
    /// Identifies it among the requests in flight.
    pub token: u64,
    /// After this time it no longer counts as in flight, unless it is extended: its worker must be gone.
    pub lapse: Duration,
}

/// How a URL relates to the waitlist of those whose slots are too far ahead to be reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It joins the end of the waitlist.
    New,
    /// It has a place there, for this instant.
    InLine(UnixMs),
    /// It stays off the waitlist, and comes back when its slot may be reserved.
    Aside,
}

impl Standing {
    /// For a URL with this place in the waitlist, or none yet.
    pub fn of(turn: Option<UnixMs>) -> Self {
        turn.map_or(Self::New, Self::InLine)
    }

    pub(super) fn turn(self) -> Option<u64> {
        if let Self::InLine(turn) = self { Some(from_ms(turn)) } else { None }
    }
}

/// An answer to a request for a slot. Instants are on the clock of the store of the schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Ask the host now: the slot is used up by this answer, and the request is in flight until [`Schedule::leave`](super::Schedule::leave).
    Now,
    /// Reserved: come back with it after this wait, at this instant.
    Reserved {
        /// How long from now.
        wait: Duration,
        /// The instant itself, to carry along.
        at: UnixMs,
    },
    /// Too far ahead to reserve: come back after this wait, or earlier to see whether the waitlist is still there.
    Later {
        /// How long from now.
        wait: Duration,
        /// Its place in the waitlist, to carry along; off the waitlist, its slot as of now.
        turn: UnixMs,
    },
    /// Its slot would come after its deadline. Nothing is reserved.
    TooLate,
    /// The host must not be asked at all.
    Blocked,
}

//! What the transitions answer.

use crate::time::UnixMs;

/// The reply to a claim: what a worker is to do with a message that it received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimReply {
    /// Handle it: the record is held by this worker now.
    Take {
        /// Failed attempts so far.
        attempts: u32,
        /// How often a fetch of it has begun that never ended.
        starts: u32,
        /// When it is no longer worth fetching: the record's deadline, moved by the pauses of its crawl.
        deadline: Option<UnixMs>,
    },
    /// Publish it once more, then acknowledge it: the store had forgotten the crawl and has only now learnt of this URL.
    /// So the store knows all that is queued as soon as the queue has gone round, long before all is fetched.
    SendAgain,
    /// Put it aside until then, and claim it again: another worker holds the URL, its crawl is paused, or it is parked
    /// and this is its message, come before its time. Not to be dropped, for it may be all that is left of the URL when the
    /// store loses its data.
    Wait {
        /// When to claim it again.
        until: UnixMs,
    },
    /// Put it aside for a while, and claim it again: the store has no record of the URL, and no room for one.
    StoreFull,
    /// Skip it: its crawl has done as many pages as it may. The record is held by this worker.
    Full,
    /// Acknowledge it and forget it: the URL is finished, or parked and has a message of its own.
    Drop,
    /// Put it aside for a while, and claim it again: its record is of a format that only newer workers read.
    Newer,
    /// Reject it: it names a crawl that the store does not know, and nothing shows that there ever was one.
    Unknown,
}

/// Whether a fetch may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Go ahead.
    Go,
    /// It was started too often without an end: it kills its worker.
    Poison,
    /// Its crawl has done as many pages as it may.
    Full,
    /// Its crawl has as many pages under way as it may still do. If one of them fails, it is this one's turn.
    Awaited,
    /// No longer this worker's, its crawl is paused, or the store has forgotten it: its message goes round again.
    Lost,
}

/// What becomes of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is new, and has a record now.
    New,
    /// It was seen before.
    Seen,
    /// The crawl has enough URLs of its host.
    LeftOut,
}

/// Maximum number of starts without an end. A record that had as many is poison.
pub const MAX_STARTS: u32 = 4;

/// Number of starts without an end from which a record is a suspect: each worker starts one suspect at a time. What dies beside others
/// tells nothing, so it takes two deaths as the only suspect to make poison: a worker may be killed for reasons of its own once.
pub const SUSPECT_STARTS: u32 = 2;

/// Whether a record that was started so often without an end may be what kills its workers.
pub fn is_suspect(starts: u32) -> bool {
    starts >= SUSPECT_STARTS
}

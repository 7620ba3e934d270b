//! The records: one for each URL and task that has no terminal state yet, and each crawl's stats.
//!
//! Each trait has the calls of one caller, whose file its doc comment names.

mod admission;
mod claims;
mod dead_letters;
mod heartbeats;
mod outbox;
mod recovery;
mod settlements;

use trawl_common::ports::Stats;

pub use admission::{Admission, Lease, Past, Run};
pub use claims::{Claims, TaskStart, Urgent};
pub use dead_letters::DeadLetters;
pub use heartbeats::Heartbeats;
pub use outbox::Outbox;
pub use recovery::{Probe, ProbeTimes, Recovery, Sweep};
pub use settlements::{Linked, Linking, Parking, Settlements};

/// Keeps one record for each URL and each task that a crawl has admitted and not finished; that of a task includes its
/// recipe.
///
/// The record is authoritative; a message is only a wake-up. Each call is atomic for each URL, and idempotent: a
/// counter changes only where a membership changes, so no order, repetition or concurrency counts twice. Every
/// invariant holds at all times:
/// admitted = records + done + failed + skipped + expired + cancelled.
pub trait Records:
    Admission + Claims + DeadLetters + Heartbeats + Outbox + Recovery + Settlements + Stats
{
}

impl<T> Records for T where
    T: Admission + Claims + DeadLetters + Heartbeats + Outbox + Recovery + Settlements + Stats
{
}

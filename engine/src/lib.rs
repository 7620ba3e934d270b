//! The engine of a fleet. It stands between the records and the messages and is the only code that admits,
//! publishes, confirms, settles and recovers.
//!
//! [`Coordinator`] is an [`Engine`](trawl_common::ports::Engine) over any [`Records`] and any [`Broker`]. A
//! URL or a task passes through these files:
//!
//! 1. `session`: a producer admits it, under a lease; the `outbox` publishes and confirms what is new. What a store that
//!    crashed may have lost is admitted again (`recent`).
//! 2. `claiming`: a message arrives, and the records decide which worker may handle it; those are in
//!    `held_urls`.
//! 3. `frontier`: the worker claims it, the most urgent first (`by_urgency`), starts it and settles it; a
//!    task more urgent than the one about to start comes first, whichever message has arrived.
//! 4. `settle`: its `links` are admitted, its page is remembered (`visits`), it ends or is parked, and its
//!    message is acknowledged.
//!
//! In the background, `upkeep` settles messages that workers need not see, extends leases, and sends lost
//! URLs again. They all share the state in `member`.

mod broker;
mod bulk_share;
mod by_urgency;
mod claiming;
mod coordinator;
mod frontier;
mod held_urls;
mod internal_message;
mod links;
mod member;
mod outbox;
mod recent;
mod records;
mod session;
mod settle;
#[cfg(test)]
mod tests;
mod upkeep;
mod visits;

pub use broker::{Broker, Consumer, Content, Delivery, Newer, Parked, Receipt, Unproven};
pub use coordinator::Coordinator;
pub use records::{
    Admission, Claims, DeadLetters, Heartbeats, Lease, Linked, Linking, Outbox, Parking, Past, Probe,
    ProbeTimes, Records, Recovery, Run, Settlements, Sweep, TaskStart, Urgent,
};

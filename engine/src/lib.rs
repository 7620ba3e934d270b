//! A fleet's engine: records of truth on one side, messages on the other, and between them the only code that admits,
//! publishes, confirms, settles and recovers.
//!
//! [`Coordinator`] is an [`Engine`](trawl_common::ports::Engine) over any [`Records`] and any [`Broker`]. A URL or a task passes through these files:
//!
//! 1. `session`: a producer admits it, under a lease; the `outbox` publishes and confirms what is new;
//! 2. `claiming`: a message arrives, and the records say who may handle it; what is held stands in the table `in_flight`;
//! 3. `frontier`: the worker claims it, the most urgent first (`by_urgency`), starts it, settles it; what is more urgent than a task that
//!    it is about to start comes first, whichever message has come;
//! 4. `settle`: its `links` are admitted, its page is remembered (`memory`), it ends or is parked, and its message is acknowledged.
//!
//! In the background, `upkeep` settles what workers need not see, extends leases, and sends lost URLs again. The state that all of them
//! share is a `member`.

mod broker;
mod by_urgency;
mod claiming;
mod coordinator;
mod frontier;
mod in_flight;
mod links;
mod member;
mod memory;
mod outbox;
mod own;
mod records;
mod session;
mod settle;
#[cfg(test)]
mod tests;
mod upkeep;

pub use broker::{Broker, Consumer, Content, Delivery, Newer, Parked, Receipt, Unproven};
pub use coordinator::Coordinator;
pub use records::{Lease, Linked, Linking, Parking, Probe, ProbeTimes, Records, Sweep, TaskStart, Urgent};

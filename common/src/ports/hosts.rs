//! Hosts: who may be asked when.

use async_trait::async_trait;

use super::Result;
use crate::gcra::{Pace, Slot};
use crate::time::UnixMs;
use crate::url::Host;

/// Keeps every host's schedule, for all workers together.
#[async_trait]
pub trait Hosts: Send + Sync {
    /// Reserves, atomically and in order, the next slot of each host for one URL. The arithmetic is
    /// [`crate::gcra::reserve`], on the clock of whoever keeps the schedule.
    async fn reserve(&self, asks: &[Ask]) -> Result<Vec<Slot>>;
}

/// A request for a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The host.
    pub host: Host,
    /// How it is to be asked.
    pub pace: Pace,
    /// The slot that was reserved for this URL earlier, if it was parked for one.
    pub held: Option<UnixMs>,
}

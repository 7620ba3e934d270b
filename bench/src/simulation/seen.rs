//! What the simulation lets see as it happens.

/// One event; instants in microseconds from the beginning of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A host was asked.
    Asked {
        /// Which.
        host: u32,
        /// When.
        at: u64,
    },
    /// A URL has ended.
    Ended {
        /// Its place in the producer's order.
        url: u32,
        /// When it was admitted.
        admitted: u64,
        /// When it ended.
        at: u64,
        /// How often it was on the ladder.
        hops: u16,
    },
}

//! Events that the simulation reports as they happen.

/// One event. Instants are in microseconds from the beginning of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A host was sent a request.
    Asked {
        /// The host.
        host: u32,
        /// The instant of the request.
        at: u64,
    },
    /// A URL has ended.
    Ended {
        /// Its index in the producer's order.
        url: u32,
        /// The instant of its admission.
        admitted: u64,
        /// The instant of its end.
        at: u64,
        /// Number of times that it was on the ladder.
        hops: u16,
    },
}

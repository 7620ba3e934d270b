//! Guards that are taken out on purpose: without any of them a promise breaks.

/// A rule that keeps a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// A message is sent again before the received one is acknowledged.
    ResendBeforeAck,
    /// A message is published before the record says so.
    PublishBeforeConfirm,
    /// A message of what another holds waits.
    Delay,
    /// A record is not taken from its holder before the lease has lapsed.
    Lease,
    /// Only its holder ends it.
    Holder,
    /// The sweep sends again a URL whose message was lost.
    Sweep,
}

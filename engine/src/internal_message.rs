//! Messages that the engine settles itself, without the worker.

use tokio::sync::oneshot;
use trawl_common::frontier::message::{Malformed, Message};
use trawl_common::time::UnixMs;

use crate::broker::{Newer, Receipt};
use crate::records::Probe;

/// A message that the engine settles itself.
pub(crate) enum InternalMessage {
    /// Redundant messages: their URL has ended, or is parked and has its own message.
    Dropped(Vec<Receipt>),
    /// A probe that came back.
    Probe(Probe, Receipt),
    /// Content that is not a message; without a receipt if it is acknowledged already.
    Malformed(Malformed, Vec<Receipt>),
    /// A message that only newer workers can read: it is passed on unchanged until one of them takes it.
    Newer(Newer, Receipt),
    /// A URL held by another worker or by a person: the message comes back later, and its record stays as it
    /// is.
    Waits {
        /// The message.
        message: Message,
        /// When the message comes back.
        until: UnixMs,
    },
    /// A message to requeue unchanged.
    Republish(Message),
    /// Signals when everything sent before it is settled.
    Flush(oneshot::Sender<()>),
}

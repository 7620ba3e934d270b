//! What an engine settles by itself: messages that are nothing to a worker.

use tokio::sync::oneshot;
use trawl_common::frontier::message::{Malformed, Message};
use trawl_common::time::UnixMs;

use crate::broker::{Newer, Receipt};
use crate::records::Probe;

/// Something to settle that no worker has to see.
pub(crate) enum Own {
    /// Messages that say nothing new: their URL has ended, or is put aside and has a message of its own.
    Dropped(Vec<Receipt>),
    /// A probe that came back.
    Probe(Probe, Receipt),
    /// Something that is no message; without a receipt if it is acknowledged already.
    Malformed(Malformed, Vec<Receipt>),
    /// A message that only newer workers read: it comes back as it is, until one of them takes it.
    Newer(Newer, Receipt),
    /// Held by another worker, or by a person: the message comes back then, its record stays as it is.
    Waits {
        /// The message.
        message: Message,
        /// When.
        until: UnixMs,
    },
    /// To go round the queue once more, untouched.
    SentAgain(Message),
    /// Says when all that was sent before it is settled.
    Flush(oneshot::Sender<()>),
}

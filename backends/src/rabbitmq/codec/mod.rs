//! The AMQP form of messages: the body is just the URL, the request as JSON, or the recipe of a task; everything
//! else is in headers.

mod headers;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::{Trust, content};
pub(super) use write::{PROBE_BODY, dead_letter_properties, expiring, item_properties, probe_properties};
pub use write::{body, properties};

/// The header that makes a message a probe, with the instant at which it was sent, in ms.
const PROBE: &str = "probe";
/// The header with the instant at which the previous probe was sent, in ms.
const BEFORE: &str = "before";

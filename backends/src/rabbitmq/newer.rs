//! Messages of a format that only newer programs read: they are passed on as they came.

use lapin::BasicProperties;
use lapin::message::Delivery;
use lapin::types::FieldTable;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_engine::Newer;

/// The header of a message's format; without it, it is of the first.
pub(super) const FORMAT_HEADER: &str = "v";

/// Headers that name further keys to route a message by: of queues, where it is published to the default exchange.
const FURTHER_KEYS: [&str; 2] = ["CC", "BCC"];

/// Properties that a broker checks: it closes the channel of whoever publishes another user's, or for a reply that nobody awaits.
const CHECKED: [&str; 2] = ["user_id", "reply_to"];

/// What arrived, with all of its properties and headers but those that the broker acts on. A message that says how often it was
/// dead-lettered before is dropped as one that goes round in a circle; and without a key, strangers write such messages, too.
pub(super) fn write_down(delivery: &Delivery, format: u64) -> Newer {
    let mut own = FieldTable::default();
    for (name, value) in delivery.properties.headers().iter().flat_map(|headers| headers.inner()) {
        if !is_brokers(name.as_str()) && !FURTHER_KEYS.contains(&name.as_str()) {
            own.insert(name.clone(), value.clone());
        }
    }
    // Text, numbers and tables of them: they always serialise.
    let mut properties =
        serde_json::to_value(delivery.properties.clone().with_headers(own)).unwrap_or_default();
    for property in CHECKED {
        if let Some(property) = properties.get_mut(property) {
            property.take();
        }
    }
    Newer { format, message: serde_json::to_vec(&(properties, &delivery.data)).unwrap_or_default() }
}

/// The properties and the body of such a message.
pub(super) fn read(newer: &Newer) -> Result<(BasicProperties, Vec<u8>)> {
    let read = serde_json::from_slice(&newer.message);
    read.map_err(|error| Error::new(ErrorKind::Corrupt, format!("a message of a newer format: {error}")))
}

/// Whether brokers add headers of this name.
pub(super) fn is_brokers(header: &str) -> bool {
    header.starts_with("x-")
}

//! Messages of a format that only newer programs can read: they are passed on unchanged.

use lapin::BasicProperties;
use lapin::message::Delivery;
use lapin::types::FieldTable;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_engine::Newer;

/// The header with a message's format; without it, the format is the first.
pub(super) const FORMAT_HEADER: &str = "v";

/// Headers with further routing keys, which name queues if the message is published to the default exchange.
const FURTHER_KEYS: [&str; 2] = ["CC", "BCC"];

/// Properties that a broker checks: it closes the channel if a publisher uses another user's id, or a reply queue
/// that nobody consumes.
const CHECKED: [&str; 2] = ["user_id", "reply_to"];

/// Stores a received message with all its properties and headers except those that the broker acts on. The broker
/// would drop a message with the headers of earlier dead-lettering as one that goes in a circle; and without a
/// key, strangers write such messages, too.
pub(super) fn write_down(delivery: &Delivery, format: u64) -> Newer {
    let mut own = FieldTable::default();
    for (name, value) in delivery.properties.headers().iter().flat_map(|headers| headers.inner()) {
        if !is_brokers(name.as_str()) && !FURTHER_KEYS.contains(&name.as_str()) {
            own.insert(name.clone(), value.clone());
        }
    }
    // Text, numbers and tables of them can always be serialised.
    let mut properties =
        serde_json::to_value(delivery.properties.clone().with_headers(own)).unwrap_or_default();
    for property in CHECKED {
        if let Some(property) = properties.get_mut(property) {
            property.take();
        }
    }
    Newer { format, message: serde_json::to_vec(&(properties, &delivery.data)).unwrap_or_default() }
}

/// Returns the properties and the body of such a message.
pub(super) fn read(newer: &Newer) -> Result<(BasicProperties, Vec<u8>)> {
    let read = serde_json::from_slice(&newer.message);
    read.map_err(|error| Error::new(ErrorKind::Corrupt, format!("a message of a newer format: {error}")))
}

/// Returns whether brokers add headers of this name.
pub(super) fn is_brokers(header: &str) -> bool {
    header.starts_with("x-")
}

//! The stored form of dead-letter entries.

use trawl_common::frontier::dead_letter::{Cause, DeadLetterEntry};
use trawl_common::frontier::outcome::Reason;
use trawl_common::text::printable;
use trawl_common::time::UnixMs;

/// Parses a stored entry; returns one that describes the bytes if they are unreadable.
pub(crate) fn stored(note: &[u8]) -> DeadLetterEntry {
    serde_json::from_slice(note).unwrap_or_else(|error| {
        let held = String::from_utf8_lossy(note);
        unreadable(&format!("its note cannot be read ({error}): {held}"), UnixMs::default())
    })
}

/// Returns the entry of a URL with unreadable stored data, which `error` describes. When it is sent again, it
/// counts as new.
pub(crate) fn unreadable(error: &str, failed_at: UnixMs) -> DeadLetterEntry {
    DeadLetterEntry::new(Cause::new(Reason::Corrupt, printable(error, 1024), failed_at))
}

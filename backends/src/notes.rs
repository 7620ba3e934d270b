//! What is kept of dead letters, as it is stored.

use trawl_common::frontier::dead_letter::{Cause, Note};
use trawl_common::frontier::outcome::Reason;
use trawl_common::text::printable;
use trawl_common::time::UnixMs;

/// A note as it is stored, or of what is stored in its place.
pub(crate) fn stored(note: &[u8]) -> Note {
    serde_json::from_slice(note).unwrap_or_else(|error| {
        let held = String::from_utf8_lossy(note);
        unreadable(&format!("its note cannot be read ({error}): {held}"), UnixMs::default())
    })
}

/// The note of a URL of which what is stored cannot be read: `error` says what it is. The URL is as new when it is sent again.
pub(crate) fn unreadable(error: &str, failed_at: UnixMs) -> Note {
    Note::of(Cause::new(Reason::Corrupt, printable(error, 1024), failed_at))
}

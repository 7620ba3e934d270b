//! How the fields of rows hold what SQLite has no type for.

use trawl_common::time::UnixMs;

/// An instant as it is stored, in ms since 1970; one beyond SQLite's range is as far as it goes.
pub(super) fn sql_ms(instant: UnixMs) -> i64 {
    i64::try_from(instant.0).unwrap_or(i64::MAX)
}

/// An instant as it was stored.
pub(super) fn unix_ms(stored: i64) -> UnixMs {
    UnixMs(stored.max(0) as u64)
}

//! Overwritten keys of crawls and entries in their list that were logged lately.

use std::time::Duration;

use moka::sync::Cache as Memory;

/// Maximum number of them that a process remembers.
const MAX_REMEMBERED: u64 = 10_000;
/// Time that it remembers one.
const REMEMBERED_TTL: Duration = Duration::from_secs(24 * 3600);

/// The keys of crawls, and entries in their list, that were logged lately.
pub(crate) type Named = Memory<String, ()>;

pub(crate) fn none_named() -> Named {
    Memory::builder().max_capacity(MAX_REMEMBERED).time_to_live(REMEMBERED_TTL).build()
}

//! What the log has named lately, as it holds something else: keys of crawls, and entries in the list of these.

use std::time::Duration;

use moka::sync::Cache as Memory;

/// Of so many of these a process remembers that it has named them...
const NAMED: u64 = 10_000;
/// ...and for so long.
const NAMED_FOR: Duration = Duration::from_secs(24 * 3600);

/// The keys of crawls, and entries in their list, that were named lately.
pub(super) type Named = Memory<String, ()>;

pub(super) fn none_named() -> Named {
    Memory::builder().max_capacity(NAMED).time_to_live(NAMED_FOR).build()
}

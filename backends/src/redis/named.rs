//! Crawls that the log has named lately, as one of their keys holds something else.

use std::time::Duration;

use moka::sync::Cache as Memory;
use trawl_common::names::CrawlRef;

/// Of so many crawls a process remembers that it has named them...
const NAMED: u64 = 10_000;
/// ...and for so long.
const NAMED_FOR: Duration = Duration::from_secs(24 * 3600);

/// The crawls that were named lately.
pub(super) type Named = Memory<CrawlRef, ()>;

pub(super) fn none_named() -> Named {
    Memory::builder().max_capacity(NAMED).time_to_live(NAMED_FOR).build()
}

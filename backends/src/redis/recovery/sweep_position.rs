//! The progress of a sweep.

use std::collections::VecDeque;
use std::time::Instant;

use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::names::CrawlRef;

/// The progress of a round.
pub(crate) struct SweepPosition {
    /// The last time that the sweeper checked everything but records.
    pub(crate) looked: Instant,
    /// Crawls that are over, each with whether that was announced.
    pub(crate) clearing: VecDeque<(CrawlRef, bool)>,
    /// Crawls whose records are still to be searched in this round.
    pub(crate) left: VecDeque<CrawlRef>,
    /// The position among the records of the first of these; "0" is the start.
    pub(crate) cursor: String,
    /// Number of records of all of them.
    pub(crate) records: u64,
    pub(crate) watermarks: Watermarks,
}

/// The results of each queue's probes, in the order of [`SourceQueue::ALL`].
#[derive(Default)]
pub(crate) struct Watermarks {
    /// When the last probe that came back was sent: everything sent before it has been delivered.
    pub(crate) delivered: [u64; SourceQueue::ALL.len()],
    /// When the last probe was sent that came back without the one before it: the queue lost everything sent
    /// before it.
    pub(crate) lost_before: [u64; SourceQueue::ALL.len()],
}

impl Watermarks {
    /// Returns the time up to which every queue is known to have delivered what was sent.
    pub(crate) fn lowest(&self) -> u64 {
        self.delivered.into_iter().min().unwrap_or_default()
    }
}

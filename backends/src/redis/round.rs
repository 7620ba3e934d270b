//! How far a sweep has come.

use std::collections::VecDeque;
use std::time::Instant;

use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::names::CrawlRef;

/// Where a round is.
pub(super) struct Round {
    /// When the sweeper last looked at all but records.
    pub(super) looked: Instant,
    /// Crawls that are over, and whether that was announced.
    pub(super) clearing: VecDeque<(CrawlRef, bool)>,
    /// Crawls whose records are still to be searched in this round.
    pub(super) left: VecDeque<CrawlRef>,
    /// The place among the records of the first of these; "0" is the start.
    pub(super) cursor: String,
    /// How many records all of them have.
    pub(super) records: u64,
    pub(super) watermarks: Watermarks,
}

/// What the probes of each line have shown, in the order of [`SourceQueue::ALL`].
#[derive(Default)]
pub(super) struct Watermarks {
    /// When the last probe was sent that came back: all that was sent before it has been delivered.
    pub(super) delivered: [u64; SourceQueue::ALL.len()],
    /// When the last probe was sent that came back without the one before it: the queue lost what was sent before it.
    pub(super) lost_before: [u64; SourceQueue::ALL.len()],
}

impl Watermarks {
    /// Up to when every queue is known to have handed out what was sent.
    pub(super) fn lowest(&self) -> u64 {
        self.delivered.into_iter().min().unwrap_or_default()
    }
}

//! How far a sweep has come.

use std::collections::VecDeque;
use std::time::Instant;

use trawl_common::frontier::line::Line;
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

/// What is known of each queue from probes, in the order of [`Line::ALL`].
#[derive(Default)]
pub(super) struct Watermarks {
    /// When the last one was sent that came back.
    pub(super) passed: [u64; Line::ALL.len()],
    /// When the last one was sent that came back without the one before it.
    pub(super) lost_before: [u64; Line::ALL.len()],
}

impl Watermarks {
    /// Up to when every queue is known to have handed out what was sent.
    pub(super) fn earliest(&self) -> u64 {
        self.passed.into_iter().min().unwrap_or_default()
    }
}

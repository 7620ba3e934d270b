//! The end of a crawl, for whoever waits for it: commands and the HTTP API.

use std::collections::{BTreeMap, BTreeSet};

use crate::frontier::crawl::CrawlStats;
use crate::names::{CrawlId, CrawlRef};
use crate::ports::{Result, Stats};

/// The work that a crawl waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// The crawl itself is not over; or it is an ad-hoc crawl, which never is, and has pending work.
    Own,
    /// It is over, and this many URLs and tasks are pending in the ad-hoc crawls to which it handed work, directly or
    /// through each other.
    Handed(u64),
    /// There was an instant at which nothing was left.
    Nothing,
}

/// Returns the work that is left of a crawl with these stats.
///
/// Handed work may move from a crawl that is yet to be looked at to one that was found empty. So nothing may have been
/// admitted between two looks that find them all empty: then there is an instant between the two at which all were.
pub async fn left_of(stats: &dyn Stats, crawl: &CrawlStats) -> Result<Left> {
    left_among(stats, crawl, |_| true).await
}

/// Like [`left_of`], with only those ad-hoc crawls that `counts` accepts by their stats.
pub async fn left_among(
    stats: &dyn Stats,
    crawl: &CrawlStats,
    counts: impl Fn(&CrawlStats) -> bool,
) -> Result<Left> {
    if has_own(crawl) {
        return Ok(Left::Own);
    }
    let mut before = None;
    loop {
        let mut handed = Handed::by(crawl);
        while let Some(id) = handed.next() {
            if let Some(stats) = stats.crawl_stats(&id).await?.filter(&counts) {
                handed.add(&stats);
            }
        }
        if handed.pending > 0 {
            return Ok(Left::Handed(handed.pending));
        }
        if handed.admitted.is_empty() || before.as_ref() == Some(&handed.admitted) {
            return Ok(Left::Nothing);
        }
        before = Some(handed.admitted);
    }
}

/// Returns the work that is left of a crawl by stats that were read before, for a list.
pub fn left_in(crawls: &BTreeMap<CrawlId, CrawlStats>, crawl: &CrawlStats) -> Left {
    if has_own(crawl) {
        return Left::Own;
    }
    let mut handed = Handed::by(crawl);
    while let Some(id) = handed.next() {
        if let Some(stats) = crawls.get(&id) {
            handed.add(stats);
        }
    }
    if handed.pending > 0 { Left::Handed(handed.pending) } else { Left::Nothing }
}

fn has_own(crawl: &CrawlStats) -> bool {
    crawl.pending > 0 || !(crawl.status.is_over() || crawl.crawl_ref().is_adhoc())
}

/// The ad-hoc crawls that have the work which a crawl handed to other spiders, and which this work handed on.
struct Handed {
    seen: BTreeSet<CrawlRef>,
    next: Vec<CrawlRef>,
    pending: u64,
    /// The number of URLs and tasks that were ever admitted to each.
    admitted: BTreeMap<CrawlId, u64>,
}

impl Handed {
    fn by(crawl: &CrawlStats) -> Self {
        let seen: BTreeSet<CrawlRef> = crawl.handed_to().collect();
        Self { next: seen.iter().cloned().collect(), seen, pending: 0, admitted: BTreeMap::new() }
    }

    fn next(&mut self) -> Option<CrawlId> {
        Some(self.next.pop()?.id)
    }

    fn add(&mut self, stats: &CrawlStats) {
        self.next.extend(stats.handed_to().filter(|further| self.seen.insert(further.clone())));
        self.pending += stats.pending;
        self.admitted.insert(stats.crawl.clone(), stats.counts.admitted);
    }
}

//! The findings of the ledger.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::faults::kind::Kind;

/// The findings for one kind of fault, or without a fault (`None` as key).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Number of times that it was injected.
    pub times: usize,
    /// Number of pages that it lost.
    pub lost: usize,
    /// Number of fetches that it caused to be repeated.
    pub again: usize,
    /// The longest time after it without a request to the site or an answer.
    pub stall: Duration,
}

/// The findings about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// The problems as texts; empty if every promise was kept.
    pub problems: Vec<String>,
    /// Rows by kind of fault; `None` is for findings that no fault explains.
    pub rows: BTreeMap<Option<Kind>, Row>,
}

impl Judgement {
    /// Adds the findings about another crawl during the same faults.
    pub fn add(&mut self, other: Self) {
        self.problems.extend(other.problems);
        for (kind, found) in other.rows {
            let row = self.row(kind);
            row.times = found.times;
            row.lost += found.lost;
            row.again += found.again;
            row.stall = row.stall.max(found.stall);
        }
    }

    pub(super) fn row(&mut self, kind: Option<Kind>) -> &mut Row {
        self.rows.entry(kind).or_default()
    }
}

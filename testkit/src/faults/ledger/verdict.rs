//! What the ledger finds.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::faults::kind::Kind;

/// What the ledger found for one kind of fault, or for none (`None` as key).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// How often it was injected.
    pub times: usize,
    /// Pages that it lost.
    pub lost: usize,
    /// Fetches that it caused a second time.
    pub again: usize,
    /// The longest time after it in which the site was neither asked nor answered.
    pub stall: Duration,
}

/// What the ledger says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// What is wrong, for people; empty when every promise was kept.
    pub problems: Vec<String>,
    /// By kind of fault; `None` holds what no fault explains.
    pub rows: BTreeMap<Option<Kind>, Row>,
}

impl Judgement {
    /// Adds what was found for another crawl that met the same faults.
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

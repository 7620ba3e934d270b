//! The table of results.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;

use super::kind::Kind;
use super::ledger::Row;
use super::outcome::Outcome;

/// The rows of several runs, added up.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: BTreeMap<Option<Kind>, Row>,
}

impl Table {
    /// Adds the rows of a run.
    pub fn add(&mut self, rows: &BTreeMap<Option<Kind>, Row>) {
        for (kind, row) in rows {
            let sum = self.rows.entry(*kind).or_default();
            sum.times += row.times;
            sum.lost += row.lost;
            sum.again += row.again;
            sum.stall = sum.stall.max(row.stall);
        }
    }

    /// Returns the table as text, in aligned columns.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{:<18} {:>8} {:>6} {:>13} {:>14}\n",
            "fault", "injected", "lost", "fetched twice", "longest stall"
        );
        for (name, row) in self.named() {
            let stall = format!("{:.1} s", row.stall.as_secs_f64());
            // Writing to a string cannot fail.
            let _ =
                writeln!(text, "{name:<18} {:>8} {:>6} {:>13} {stall:>14}", row.times, row.lost, row.again);
        }
        text
    }

    /// Returns the table as JSON.
    pub fn json(&self) -> serde_json::Value {
        let row = |(name, row): (&str, Row)| {
            json!({
                "fault": name, "injected": row.times, "lost": row.lost, "fetched_twice": row.again,
                "longest_stall_s": row.stall.as_secs_f64(),
            })
        };
        self.named().into_iter().map(row).collect()
    }

    /// Returns each row with its name, the sum last.
    fn named(&self) -> Vec<(&'static str, Row)> {
        let mut sum = Row::default();
        let (by_fault, by_none): (Vec<_>, Vec<_>) = self.rows.iter().partition(|(kind, _)| kind.is_some());
        let mut named = Vec::new();
        for (kind, row) in by_fault.into_iter().chain(by_none) {
            named.push((kind.map_or("(none of them)", Kind::into), *row));
            sum.times += row.times;
            sum.lost += row.lost;
            sum.again += row.again;
            sum.stall = sum.stall.max(row.stall);
        }
        named.push(("all", sum));
        named
    }
}

impl Outcome {
    /// Returns the text for a failed check: the seed, the problems, and the timeline.
    pub fn complaint(&self) -> String {
        let shown: Vec<&String> = self.verdict.problems.iter().take(20).collect();
        let more = self.verdict.problems.len() - shown.len();
        let mut text =
            format!("{}, seed {}: {} problems\n", self.scenario, self.seed, self.verdict.problems.len());
        for problem in shown {
            let _ = writeln!(text, "  {problem}");
        }
        if more > 0 {
            let _ = writeln!(text, "  ... and {more} more");
        }
        text.push_str("what happened:\n");
        for line in &self.timeline {
            let _ = writeln!(text, "  {line}");
        }
        text
    }
}

//! The outcome of a run.

use std::time::Duration;

use super::kind::Kind;
use super::ledger::Judgement;
use super::scenario::Scenario;

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The scenario.
    pub scenario: Scenario,
    /// The seed that repeats it.
    pub seed: u64,
    /// The findings of the ledger.
    pub verdict: Judgement,
    /// The log of the run.
    pub timeline: Vec<String>,
    /// Time that the run took.
    pub took: Duration,
    /// Number of requests that the sites received.
    pub asks: usize,
    /// The faults that were not injected because a crawl had ended before.
    pub missed: Vec<Kind>,
}

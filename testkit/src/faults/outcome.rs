//! How a run went.

use std::time::Duration;

use super::kind::Kind;
use super::ledger::Judgement;
use super::scenario::Scenario;

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was crawled.
    pub scenario: Scenario,
    /// The seed that repeats it.
    pub seed: u64,
    /// What the ledger says.
    pub verdict: Judgement,
    /// What happened when.
    pub timeline: Vec<String>,
    /// How long the crawl took.
    pub took: Duration,
    /// How many pages the sites were asked for in all.
    pub asks: usize,
    /// The faults that were not injected, as a crawl had come to its end before.
    pub missed: Vec<Kind>,
}

//! What a run is to be.

use std::path::PathBuf;
use std::time::Duration;

use super::kind::Kind;
use super::scenario::Scenario;

/// One run of the suite.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program `trawl`.
    pub trawl: PathBuf,
    /// Another build of it: in the place of each worker and producer, the two alternate.
    pub old: Option<PathBuf>,
    /// Where the run keeps its files.
    pub folder: PathBuf,
    /// What is crawled.
    pub scenario: Scenario,
    /// Pages of all sites together.
    pub pages: usize,
    /// How many faults.
    pub faults: usize,
    /// What decides which.
    pub seed: u64,
    /// How many workers.
    pub workers: usize,
    /// `recovery.lost_after` of the fleet.
    pub lost_after: Duration,
    /// The kinds of fault to draw from.
    pub kinds: Vec<Kind>,
    /// Whether what happens is printed at once.
    pub aloud: bool,
}

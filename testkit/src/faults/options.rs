//! The options of a run.

use std::path::PathBuf;
use std::time::Duration;

use super::kind::Kind;
use super::scenario::Scenario;

/// The options of one run of the suite.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program `trawl`.
    pub trawl: PathBuf,
    /// Another build of it, which takes turns with the first in each worker and producer.
    pub old: Option<PathBuf>,
    /// The folder for the files of the run.
    pub folder: PathBuf,
    /// The scenario.
    pub scenario: Scenario,
    /// Number of pages of all sites together.
    pub pages: usize,
    /// Number of faults.
    pub faults: usize,
    /// The seed that decides which fault comes when.
    pub seed: u64,
    /// Number of workers.
    pub workers: usize,
    /// `recovery.lost_after` of the fleet.
    pub lost_after: Duration,
    /// The kinds of fault to draw from.
    pub kinds: Vec<Kind>,
    /// Whether to print the timeline while it happens.
    pub aloud: bool,
}

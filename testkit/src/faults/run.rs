//! One run: a crawl, faults while it lasts, and the ledger at its end.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::sleep;

use super::kind::Kind;
use super::ledger::{Injected, Verdict};
use super::plan;
use super::scenario::Scenario;
use super::scene::{Past, Scene};

/// What a run is to be.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program `trawl`.
    pub trawl: PathBuf,
    /// Another build of it, which every second worker runs.
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
    /// `recovery.patience` of the fleet.
    pub patience: Duration,
    /// The kinds of fault to draw from.
    pub kinds: Vec<Kind>,
    /// Whether the story is printed while it happens.
    pub aloud: bool,
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was crawled.
    pub scenario: Scenario,
    /// The seed that repeats it.
    pub seed: u64,
    /// What the ledger says.
    pub verdict: Verdict,
    /// What happened when.
    pub story: Vec<String>,
    /// How long the crawl took.
    pub took: Duration,
    /// How many pages the sites were asked for in all.
    pub asks: usize,
    /// The faults that were not injected, as a crawl had come to its end before.
    pub missed: Vec<Kind>,
}

/// Runs a crawl through its faults.
///
/// # Errors
/// When the suite itself fails: a server that does not start, a file that cannot be read.
pub async fn run(options: &Options) -> io::Result<Outcome> {
    let mut scene = Scene::set_up(options).await?;
    scene.crawl_before().await?;
    scene.produce();
    let kinds: Vec<Kind> =
        options.kinds.iter().copied().filter(|kind| options.scenario.takes(*kind)).collect();
    let steps = plan::draw(options.seed, options.faults, options.pages, &kinds);
    let mut faults: Vec<Injected> = Vec::with_capacity(steps.len());
    // The latest of those that need time to be mended.
    let (mut loss, mut worker): (Option<Past>, Option<Past>) = (None, None);
    for step in &steps {
        if !scene.comes_to(step.after).await {
            break;
        }
        sleep(step.pause).await;
        for earlier in [&loss, &worker].into_iter().flatten() {
            if !step.kind.may_follow(earlier.fault.kind) {
                scene.mends(earlier, step.kind).await;
            }
        }
        let fault = scene.stage.inject(step, &scene.fleet, &scene.story).await?;
        faults.push(fault);
        let past = Some(Past { fault, told: scene.told() });
        if fault.kind.loses_data() {
            loss = past;
        } else if fault.kind.takes_worker() {
            worker = past;
        }
        scene.recovers(&fault).await;
    }
    let missed = steps[faults.len()..].iter().map(|step| step.kind).collect();
    Ok(Outcome { missed, ..scene.ends(faults).await? })
}

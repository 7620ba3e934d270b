//! The embedded engine's fault suite: `trawl crawl` is killed again and again, and the ledger judges the outcome.

use std::io;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

use super::kind::Kind;
use super::layout::Layout;
use super::ledger::{Facts, Injected};
use super::outcome::Outcome;
use super::scenario::{Scenario, Sink};
use super::stored;
use super::timeline::Timeline;
use super::web::Web;

/// Number of URLs of each lane that a process has in hand.
const PREFETCH: usize = 8;
/// URLs in hand of both lanes: new ones, and those that come back.
const IN_HAND: usize = 2 * PREFETCH;
/// Maximum time of a crawl.
const CRAWL_TIMEOUT: Duration = Duration::from_secs(120);

/// A crawl in one process, and its files.
#[derive(Clone, Debug)]
pub struct Crawl {
    /// The program `trawl`.
    pub trawl: PathBuf,
    /// The folder of `crawl.db` and `items.jsonl`.
    pub folder: PathBuf,
}

impl Crawl {
    /// Returns the command that starts the crawl or continues it. It identifies itself to the site with the number of
    /// the run.
    pub fn command(&self, source: &str, run: usize) -> Command {
        let mut command = Command::new(&self.trawl);
        command
            .args(["crawl", source, "--allow-private", "--rate", "unlimited", "--concurrency", "8", "--json"])
            .current_dir(&self.folder)
            .env_clear()
            .env("TRAWL__RETRY__BACKOFF", "100ms")
            .env("TRAWL__CACHE__TTL", "0s")
            .env("TRAWL__WORKER__PREFETCH", PREFETCH.to_string())
            .env("TRAWL__FETCH__USER_AGENT", format!("worker-{run}"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Returns the path of the file of items.
    pub fn items(&self) -> PathBuf {
        self.folder.join("items.jsonl")
    }
}

/// Crawls a site of `pages` pages, killing the process `kills` times, until a run completes.
///
/// # Errors
/// If the suite itself fails.
pub async fn through_kills(crawl: &Crawl, pages: usize, kills: usize, seed: u64) -> io::Result<Outcome> {
    let start = Instant::now();
    let timeline = Timeline::new(start, false);
    let web = Web::serve(Layout::listed(pages, seed), start).await?;
    let mut chance = StdRng::seed_from_u64(seed);
    let mut faults = Vec::with_capacity(kills);
    for number in 1..=kills {
        let mut run = crawl.command(&web.source(), number).spawn()?;
        let reached = pages * number / (kills + 1);
        web.pace(reached);
        let mut progress = web.progress();
        tokio::select! {
            _ = timeout(CRAWL_TIMEOUT, progress.wait_for(|now| now.pages >= reached)) => {}
            ended = run.wait() => timeline.note(format!("run {number} ended by itself: {}", ended?)),
        }
        // While it opens its file, reads sitemaps, fetches or settles.
        sleep(Duration::from_millis(chance.random_range(0..200))).await;
        run.kill().await?;
        let at = start.elapsed();
        timeline.note(format!("killed run {number} at page {reached}"));
        faults.push(Injected { kind: Kind::WorkerKill, victim: Some(number), from: at, to: at });
    }
    web.pace(usize::MAX);
    let output = timeout(CRAWL_TIMEOUT, crawl.command(&web.source(), kills + 1).output()).await??;
    let ended = has_finished(&output).then(|| start.elapsed());
    let stats = serde_json::from_slice(&output.stdout).ok();
    timeline.note(format!(
        "the last run: {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    ));

    let items = stored::items(&crawl.items(), Sink::Files)?;
    let facts = Facts {
        pages: web.pages().to_vec(),
        limit: None,
        sinks: vec![Sink::Files],
        field: None,
        asks: web.log(),
        items,
        archived: Vec::new(),
        dead_letters: None,
        ends: None,
        stats,
        faults,
        ended,
        in_hand: IN_HAND,
        workers: 1,
        ..Facts::default()
    };
    let verdict = facts.judge();
    Ok(Outcome {
        scenario: Scenario::Sitemap,
        seed,
        verdict,
        timeline: timeline.lines(),
        took: start.elapsed(),
        asks: facts.asks.len(),
        missed: Vec::new(),
    })
}

/// Whether the output of a run says that its crawl is finished.
pub fn has_finished(output: &Output) -> bool {
    let stats: Option<Value> = serde_json::from_slice(&output.stdout).ok();
    stats.is_some_and(|stats| stats["status"] == "finished" && stats["pending"] == 0)
}

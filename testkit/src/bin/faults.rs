//! The command line of the fault suite: see `trawl_testkit::faults`.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use strum::VariantArray;
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};
use trawl_common::duration;
use trawl_testkit::faults::kind::Kind;
use trawl_testkit::faults::named::named;
use trawl_testkit::faults::options::Options;
use trawl_testkit::faults::outcome::Outcome;
use trawl_testkit::faults::report::Table;
use trawl_testkit::faults::run::run;
use trawl_testkit::faults::scenario::Scenario;

/// Crawl a synthetic site with a fleet of real processes, injure it at random, and account for every URL
#[derive(Parser)]
#[command(name = "faults")]
struct Args {
    /// The program under test
    #[arg(long, value_name = "FILE", default_value = "target/release/trawl")]
    trawl: PathBuf,
    /// Another build of it, which takes turns with the first in each worker and producer
    #[arg(long, value_name = "FILE")]
    old: Option<PathBuf>,
    /// The scenario; by default the scenarios take turns, seed by seed
    #[arg(long, value_name = "NAME", value_parser = named::<Scenario>)]
    scenario: Option<Scenario>,
    /// Number of pages of the sites
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    urls: usize,
    /// Number of faults in each run
    #[arg(long, value_name = "N", default_value_t = 200)]
    faults: usize,
    /// The seed that decides which fault comes when; the first of several seeds
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of seeds to run, one after the other
    #[arg(long, value_name = "N", default_value_t = 1)]
    seeds: u64,
    /// Number of workers
    #[arg(long, value_name = "N", default_value_t = 4)]
    workers: usize,
    /// The fleet's recovery.lost_after
    #[arg(long, value_name = "TIME", default_value = "4s", value_parser = duration::parse)]
    lost_after: Duration,
    /// Only these kinds of fault, separated by commas
    #[arg(long, value_name = "KIND", value_parser = named::<Kind>, value_delimiter = ',')]
    only: Vec<Kind>,
    /// Print the table as one JSON line
    #[arg(long)]
    json: bool,
    /// Don't print the timeline while it happens
    #[arg(short, long)]
    quiet: bool,
}

impl Args {
    /// Runs every seed. Returns whether all promises were kept.
    async fn run(&self) -> io::Result<bool> {
        let mut table = Table::default();
        let mut broken = Vec::new();
        for seed in self.seed..self.seed + self.seeds {
            let outcome = self.run_seed(seed).await?;
            table.add(&outcome.verdict.rows);
            let problems = outcome.verdict.problems.len();
            let (asks, took) = (outcome.asks, outcome.took.as_secs_f64());
            let scenario = outcome.scenario;
            anstream::eprintln!(
                "{scenario}, seed {seed}: {problems} problems, {asks} requests in {took:.0} s"
            );
            if problems > 0 {
                anstream::eprintln!("{}", outcome.complaint());
                broken.push(seed);
            }
        }
        if self.json {
            let line = serde_json::json!({ "urls": self.urls, "seeds": self.seeds, "broken": broken, "faults": table.json() });
            anstream::println!("{line}");
        } else {
            anstream::print!("{}", table.text());
        }
        if !broken.is_empty() {
            anstream::eprintln!("broken promises with seeds {broken:?}: repeat one with --seed");
        }
        Ok(broken.is_empty())
    }

    async fn run_seed(&self, seed: u64) -> io::Result<Outcome> {
        let folder = TempDir::with_prefix("trawl-faults-")?;
        let options = Options {
            trawl: self.trawl.canonicalize()?,
            old: self.old.as_ref().map(|old| old.canonicalize()).transpose()?,
            folder: folder.path().to_owned(),
            scenario: self.scenario.unwrap_or_else(|| Scenario::of_seed(seed)),
            pages: self.urls,
            faults: self.faults,
            seed,
            workers: self.workers,
            lost_after: self.lost_after,
            kinds: if self.only.is_empty() { Kind::VARIANTS.to_vec() } else { self.only.clone() },
            aloud: !self.quiet,
        };
        let mut outcome = run(&options).await?;
        if let missed @ 1.. = outcome.missed.len() {
            outcome.verdict.problems.push(format!("{missed} of {} faults were not injected", self.faults));
        }
        if !outcome.verdict.problems.is_empty() {
            anstream::eprintln!("what the programs said and wrote is in {}", folder.keep().display());
        }
        Ok(outcome)
    }
}

/// Completes on SIGINT or SIGTERM; never, if no handler can be installed.
async fn asked_to_stop() {
    let Ok(mut term) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = term.recv() => {}
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let result = tokio::select! {
        result = args.run() => result,
        // When the run is dropped, it ends its processes.
        () = asked_to_stop() => Err(io::Error::other("interrupted")),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            anstream::eprintln!("faults: {error}");
            ExitCode::from(2)
        }
    }
}

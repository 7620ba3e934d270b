//! How politely a fleet of real processes crawls, judged by the log of the hosts that it asks.

mod beside;
mod hiccups;
mod rate;
mod rig;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand};
use tokio::time::{sleep, timeout};
use trawl_common::politeness::rate::Rate;
use trawl_testkit::faults::signal::Signal;
use trawl_testkit::hostile::Hostile;
use trawl_testkit::many_hosts::{ManyHosts, Plan};
use trawl_testkit::politeness::pacing;

use crate::rig::{LIMIT, Rig};

/// Crawl a synthetic web of many hosts with real workers, and judge by the hosts' log how they were asked
#[derive(Parser)]
#[command(name = "politeness")]
struct Args {
    /// The program under test
    #[arg(long, value_name = "FILE", default_value = "target/release/trawl")]
    trawl: PathBuf,
    #[command(subcommand)]
    measure: Measure,
}

#[derive(Subcommand)]
enum Measure {
    /// Many hosts, each at its pace
    Pace {
        #[arg(long, default_value_t = 50)]
        hosts: usize,
        #[arg(long, default_value_t = 150)]
        pages: usize,
        #[arg(long, default_value_t = 4)]
        workers: usize,
        /// Kill a worker each so many seconds
        #[arg(long, value_name = "SECONDS")]
        kill: Option<u64>,
    },
    /// One slow host with half of the backlog beside many quick ones: how long those take, alone and beside it
    Slow {
        #[arg(long, default_value_t = 20_000)]
        urls: usize,
        /// Watch the slow host for so many seconds once the others are done
        #[arg(long, default_value_t = 60)]
        watch: u64,
    },
    /// One host at each of several rates, by both engines: whether the rate is reached, and kept
    Rate {
        #[arg(
            value_name = "RATE",
            value_delimiter = ',',
            default_value = "1/s,60/m,5/s,10/s,100/s,300/s,500/s,1000/s,unlimited"
        )]
        rates: Vec<Rate>,
        #[arg(long, default_value_t = 2)]
        workers: usize,
        /// How long each is to take
        #[arg(long, default_value_t = 20)]
        seconds: u32,
    },
    /// A quick host, some of whose pages take long: whether the others are asked for as fast as without those
    Hiccups {
        #[arg(long, default_value_t = 20_000)]
        pages: usize,
        /// One of so many pages takes long
        #[arg(long, default_value_t = 1_000)]
        each: usize,
    },
    /// Honest hosts beside hostile ones: whether these hold up those
    Beside {
        /// links-to-itself, links-to-private-addresses, links-to-no-hosts, interim-answers, slow-pages; without one,
        /// all
        #[arg(value_name = "KIND")]
        kinds: Vec<Hostile>,
        /// How long each is watched
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
}

/// A pace of five a second.
const INTERVAL: Duration = Duration::from_millis(200);

fn row(what: &str, value: &str, bar: &str, holds: bool) -> bool {
    anstream::println!("{what:<58} {value:>12}   {bar:<16} {}", if holds { "ok" } else { "MISSED" });
    holds
}

async fn pace(
    trawl: &Path,
    hosts: usize,
    pages: usize,
    workers: usize,
    kill: Option<u64>,
) -> io::Result<bool> {
    let world =
        ManyHosts::serve(&vec![Plan { pages, latency: Duration::from_millis(20), ..Plan::default() }; hosts])
            .await?;
    let settings = [("TRAWL__POLITENESS__RATE", "5/s"), ("TRAWL__RECOVERY__LOST_AFTER", "4s")];
    let mut rig = Rig::start(trawl, workers, &settings).await?;
    rig.produce(&world.pages())?;
    let killing = async {
        let Some(pause) = kill else { return std::future::pending().await };
        for pick in 0.. {
            sleep(Duration::from_secs(pause)).await;
            if let Some(worker) = rig.fleet.worker(pick) {
                worker.signal(Signal::Kill).await?;
            }
        }
        io::Result::Ok(())
    };
    tokio::select! {
        // Every page, and the robots.txt of each host.
        () = world.asked_for(hosts * (pages + 1)) => {}
        killed = killing => killed?,
        () = sleep(LIMIT) => return Err(io::Error::other("the crawl takes too long")),
    }
    let pacing = pacing(&world.log(), INTERVAL);
    let short = 100.0 * pacing.short_share();
    anstream::println!(
        "{hosts} hosts at 5/s, {workers} workers{}:",
        kill.map_or(String::new(), |pause| format!(", one killed each {pause} s"))
    );
    let polite =
        row("gaps shorter than 85 % of the interval", &format!("{short:.2} %"), "< 1 %", short < 1.0);
    let used = 100.0 * pacing.used;
    anstream::println!("  shortest gap {:?}, {} requests", pacing.shortest, pacing.requests);
    Ok(row("of the possible throughput", &format!("{used:.1} %"), "> 90 %", used > 90.0) && polite)
}

/// How long the quick hosts' pages take, with a slow host's among them or without. The rest of the watch shows the
/// pace of the slow one.
async fn quick(trawl: &Path, urls: usize, slow: usize, watch: Duration) -> io::Result<(Duration, f64)> {
    let latency = Duration::from_millis(20);
    let quick = 20;
    let mut plans = vec![Plan { pages: urls / quick, latency, ..Plan::default() }; quick];
    plans.push(Plan { pages: slow, latency, ..Plan::default() });
    let world = Arc::new(ManyHosts::serve(&plans).await?);
    let rule = format!(
        "[politeness]\nrate = \"unlimited\"\nconcurrency = 0\n[[politeness.host]]\nhost = [\"{}\"]\nrate = \"1/s\"\n",
        world.host(quick)
    );
    let mut rig = Rig::start(trawl, 0, &[]).await?;
    std::fs::write(rig.folder.path().join("trawl.toml"), rule)?;
    rig.produce(&world.pages())?;
    rig.produced().await;
    let workers = rig.worker()?;
    let of_quick =
        |log: &[_]| log.iter().filter(|a: &&trawl_testkit::many_hosts::Arrival| a.host < quick).count();
    let done = async {
        loop {
            let log = world.log();
            if of_quick(&log) >= urls + quick {
                return log;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    let log = timeout(LIMIT, done).await.map_err(|_| io::Error::other("the crawl takes too long"))?;
    let times: Vec<Duration> = log.iter().filter(|a| a.host < quick).map(|a| a.at).collect();
    let took =
        times.iter().max().copied().unwrap_or_default() - times.iter().min().copied().unwrap_or_default();
    if slow > 0 {
        sleep(watch).await;
    }
    drop(workers);
    let of_slow: Vec<_> = world.log().into_iter().filter(|a| a.host == quick).collect();
    Ok((took, pacing(&of_slow, Duration::from_secs(1)).used))
}

async fn slow(trawl: &Path, urls: usize, watch: u64) -> io::Result<bool> {
    let watch = Duration::from_secs(watch);
    let (alone, _) = quick(trawl, urls / 2, 0, watch).await?;
    let (beside, used) = quick(trawl, urls / 2, urls / 2, watch).await?;
    anstream::println!(
        "{} pages of 20 hosts at 20 ms, one worker with 64 slots: {alone:.2?} alone",
        urls / 2
    );
    let ratio = beside.as_secs_f64() / alone.as_secs_f64();
    let quick =
        row("beside as many of one host at 1/s", &format!("{ratio:.2} times"), "<= 1.3 times", ratio <= 1.3);
    let share = 100.0 * used;
    Ok(row(
        "of its own pace the slow host keeps",
        &format!("{share:.1} %"),
        "95 to 105 %",
        (95.0..=105.0).contains(&share),
    ) && quick)
}

#[tokio::main]
async fn main() -> ExitCode {
    let Args { trawl, measure } = Args::parse();
    let result = match measure {
        Measure::Pace { hosts, pages, workers, kill } => pace(&trawl, hosts, pages, workers, kill).await,
        Measure::Slow { urls, watch } => slow(&trawl, urls, watch).await,
        Measure::Hiccups { pages, each } => hiccups::all(&trawl, pages, each).await,
        Measure::Beside { kinds, seconds } => beside::all(&trawl, &kinds, seconds).await,
        Measure::Rate { rates, workers, seconds } => rate::all(&trawl, &rates, workers, seconds).await,
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            anstream::eprintln!("politeness: {error}");
            ExitCode::from(2)
        }
    }
}

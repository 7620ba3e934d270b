//! Measures one host at several rates, requested by one process with an embedded store and by a fleet.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;
use trawl_common::politeness::rate::Rate;
use trawl_testkit::many_hosts::{ManyHosts, Plan};
use trawl_testkit::politeness::{Flow, flow};

use crate::rig::{LIMIT, Rig};

/// Pages requested per second of a host without a rate.
const UNLIMITED: f64 = 500.0;

/// Time that the host takes to answer.
const LATENCY: Duration = Duration::from_millis(5);

/// Measures each rate with each engine, and prints a row for each. Returns whether all bars are met.
pub(crate) async fn all(trawl: &Path, rates: &[Rate], workers: usize, seconds: u32) -> io::Result<bool> {
    anstream::println!("one host at a rate, whose answers take {LATENCY:?}:");
    anstream::println!(
        "{:<10} {:<12} {:>6} {:>12} {:>9} {:>12}",
        "rate",
        "engine",
        "pages",
        "a second",
        "early",
        "longest gap"
    );
    let mut all_met = true;
    for rate in rates {
        let per_second = rate.interval().map_or(UNLIMITED, |interval| 1.0 / interval.as_secs_f64());
        let pages = (per_second * f64::from(seconds)).ceil() as usize + 1;
        for fleet in [false, true] {
            let world = ManyHosts::serve(&[Plan { pages, latency: LATENCY, ..Plan::default() }]).await?;
            let (engine, crawled) = if fleet {
                (format!("{workers} workers"), by_fleet(trawl, &world, *rate, workers).await)
            } else {
                ("embedded".to_owned(), embedded(trawl, &world, *rate).await)
            };
            crawled?;
            let flow = measured(&world, *rate);
            let met = rate.interval().is_none()
                || (0.95..=1.05).contains(&(flow.per_second / per_second)) && flow.early < 0.01;
            all_met &= met;
            anstream::println!(
                "{:<10} {engine:<12} {pages:>6} {:>12.2} {:>7.2} % {:>9} ms  {}",
                rate.to_string(),
                flow.per_second,
                100.0 * flow.early,
                flow.longest.as_millis(),
                if met { "ok" } else { "MISSED" },
            );
        }
    }
    Ok(all_met)
}

/// Returns the flow of page requests in the host's log.
fn measured(world: &ManyHosts, rate: Rate) -> Flow {
    let log = world.log();
    let pages = log.iter().filter(|arrival| arrival.path != "/robots.txt");
    flow(&pages.map(|arrival| arrival.at).collect::<Vec<_>>(), rate.interval())
}

async fn embedded(trawl: &Path, world: &ManyHosts, rate: Rate) -> io::Result<()> {
    let folder = TempDir::with_prefix("trawl-politeness-")?;
    std::fs::write(folder.path().join("list.txt"), world.pages().join("\n"))?;
    let mut command = Command::new(trawl.canonicalize()?);
    command.args(["crawl", "list.txt", "--allow-private", "-q", "--rate", &rate.to_string()]);
    command.current_dir(folder.path()).stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(LIMIT, command.output()).await.map_err(|_| too_long())??;
    let failed = || io::Error::other(format!("trawl crawl: {}", String::from_utf8_lossy(&output.stderr)));
    output.status.success().then_some(()).ok_or_else(failed)
}

async fn by_fleet(trawl: &Path, world: &ManyHosts, rate: Rate, workers: usize) -> io::Result<()> {
    let rate = rate.to_string();
    let mut rig = Rig::start(trawl, workers, &[("TRAWL__POLITENESS__RATE", &rate)]).await?;
    let pages = world.pages();
    rig.produce(&pages)?;
    // Every page, and robots.txt.
    timeout(LIMIT, world.asked_for(pages.len() + 1)).await.map_err(|_| too_long())
}

fn too_long() -> io::Error {
    io::Error::other("the crawl takes too long")
}

//! A quick host, some of whose pages take long: whether the others are asked for as fast as without those.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;
use trawl_testkit::many_hosts::{ManyHosts, Plan};

use crate::rig::{LIMIT, Rig};
use crate::row;

/// The time that a usual page takes, and that one of many takes.
const LATENCY: Duration = Duration::from_millis(5);
const LONG: Duration = Duration::from_millis(1_400);

/// Lowest share of the usual rate that is to be kept, over all and in any second.
const MIN_SHARE: f64 = 0.8;
const MIN_SHARE_PER_SECOND: f64 = 0.3;

/// Measures `pages` of a host without a rate, then the same while one of `each` takes long. Returns whether all bars
/// are met.
pub(crate) async fn all(trawl: &Path, pages: usize, each: usize) -> io::Result<bool> {
    let usual = requests(trawl, pages, None).await?;
    anstream::println!("{pages} pages of one host, one worker: {:.0} pages/s", usual.0);
    let with = requests(trawl, pages, Some((each, LONG))).await?;
    let (share, worst) = (with.0 / usual.0, with.1 / usual.0);
    let rate = row(
        &format!("of that, while one of {each} takes {LONG:?}"),
        &format!("{:.0} %", 100.0 * share),
        &format!(">= {:.0} %", 100.0 * MIN_SHARE),
        share >= MIN_SHARE,
    );
    Ok(row(
        "of that, in the worst second",
        &format!("{:.0} %", 100.0 * worst),
        &format!(">= {:.0} %", 100.0 * MIN_SHARE_PER_SECOND),
        worst >= MIN_SHARE_PER_SECOND,
    ) && rate)
}

/// Returns the requests per second until nine tenths of the pages are asked for, and those of the worst second.
async fn requests(trawl: &Path, pages: usize, long: Option<(usize, Duration)>) -> io::Result<(f64, f64)> {
    let world = ManyHosts::serve(&[Plan { pages, latency: LATENCY, long, ..Plan::default() }]).await?;
    let settings = [("TRAWL__POLITENESS__RATE", "unlimited"), ("TRAWL__POLITENESS__CONCURRENCY", "0")];
    let mut rig = Rig::start(trawl, 0, &settings).await?;
    rig.produce(&world.pages())?;
    rig.produced().await;
    let _worker = rig.worker()?;
    let most = pages * 9 / 10;
    timeout(LIMIT, world.asked_for(most)).await.map_err(|_| io::Error::other("the crawl takes too long"))?;
    let times: Vec<f64> = world.log().iter().take(most).map(|arrival| arrival.at.as_secs_f64()).collect();
    let (first, took) = (times[0], times[most - 1] - times[0]);
    let in_second =
        |second: usize| times.iter().filter(|&&time| (time - first) as usize == second).count() as f64;
    let worst = (0..took as usize).map(in_second).fold(f64::INFINITY, f64::min);
    Ok((most as f64 / took, worst))
}

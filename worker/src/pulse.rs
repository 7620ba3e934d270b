//! What a worker does on the side: it shows that it lives, and looks for what others lost.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{info, warn};
use trawl_common::ports::{Heartbeat, Result};

use crate::Shared;
use crate::settle::urls_by_crawl;

const BEAT_EVERY: Duration = Duration::from_secs(5);
/// Three missed beats, and the others may take over what this worker holds.
const BEAT_TTL: Duration = Duration::from_secs(15);
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// The first sign of life, before the first message.
pub(crate) async fn first_beat(shared: &Shared) -> Result<()> {
    beat(shared, 0.0).await
}

/// Beats until the task is ended.
pub(crate) async fn beats(shared: Arc<Shared>) {
    let mut ticks = every(BEAT_EVERY);
    let (mut before, mut since) = (shared.tally.done(), Instant::now());
    loop {
        ticks.tick().await;
        let pages = shared.tally.done();
        let rate = (pages - before) as f64 / since.elapsed().as_secs_f64().max(0.001);
        (before, since) = (pages, Instant::now());
        if let Err(error) = beat(&shared, rate).await {
            warn!(%error, "no heartbeat");
        }
    }
}

/// Looks for lost records until the task is ended, and sends them on their way again.
pub(crate) async fn sweeps(shared: Arc<Shared>) {
    let mut ticks = every(SWEEP_EVERY);
    loop {
        ticks.tick().await;
        if let Err(error) = sweep(&shared).await {
            warn!(%error, "could not look for lost URLs");
        }
    }
}

async fn sweep(shared: &Shared) -> Result<()> {
    let lost = shared.ports.frontier.sweep(&shared.id).await?;
    if lost.is_empty() {
        return Ok(());
    }
    info!(urls = lost.len(), "sending lost URLs on their way again");
    shared.ports.queue.publish(&lost).await?;
    for (crawl, urls) in urls_by_crawl(lost.into_iter()) {
        shared.ports.frontier.confirm(&crawl, &urls).await?;
    }
    Ok(())
}

async fn beat(shared: &Shared, pages_per_second: f64) -> Result<()> {
    let beat = Heartbeat {
        worker: shared.id.clone(),
        version: env!("CARGO_PKG_VERSION"),
        in_flight: shared.hands.len(),
        pages_per_second,
    };
    shared.ports.frontier.beat(&beat, BEAT_TTL).await
}

fn every(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

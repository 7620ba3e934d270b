//! What a worker does on the side: it shows that it lives, keeps what it holds, and looks for what others lost.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tracing::{debug, info};
use trawl_common::ports::{Heartbeat, Result};

use crate::Shared;
use crate::settle::{self, urls_by_crawl};

const BEAT_EVERY: Duration = Duration::from_secs(5);
const BEAT_TTL: Duration = Duration::from_secs(15);

const SUMMARY_EVERY: Duration = Duration::from_secs(60);

/// How soon a change of a spider's file is seen.
const LOOK_EVERY: Duration = Duration::from_secs(1);

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
        match beat(&shared, rate).await {
            Ok(()) => shared.health.works("beating"),
            Err(error) => shared.health.fails("beating", &error),
        }
    }
}

/// Says once a minute what was done in it, also of messages that were dropped as unproven, and when there is nothing to do any
/// more; until the task is ended.
pub(crate) async fn summaries(shared: Arc<Shared>) {
    let mut ticks = every(SUMMARY_EVERY);
    ticks.tick().await;
    let tally = &shared.tally;
    let counts = || [tally.done(), tally.failed(), tally.other(), tally.unproven()];
    let (mut before, mut is_idle) = (counts(), true);
    loop {
        ticks.tick().await;
        let (now, in_hand) = (counts(), shared.hands.len());
        let [done, failed, other, unproven] = [0, 1, 2, 3].map(|at| now[at] - before[at]);
        let was_idle = std::mem::replace(&mut is_idle, now == before && in_hand == 0);
        before = now;
        match (is_idle, was_idle) {
            (false, _) => info!(done, failed, other, unproven, in_hand, "the last minute"),
            (true, false) => info!("waiting for messages"),
            (true, true) => {}
        }
    }
}

/// Keeps what has been in hand for a while, until the task is ended. Most pages are settled before.
pub(crate) async fn keeping(shared: Arc<Shared>) {
    let period = settle::lease_period(&shared);
    let mut ticks = every(period);
    loop {
        ticks.tick().await;
        // What another has by now is noticed when it is settled.
        settle::extend_leases(&shared, &shared.hands.older_than(period)).await;
        let slow = shared.turns.places.older_than(period);
        if !slow.is_empty()
            && let Err(error) = shared.ports.hosts.stay(&slow, shared.turns.lapse).await
        {
            debug!(%error, "places not kept; they lapse");
        }
    }
}

/// Takes up what changes in the files of spiders, until the task is ended.
pub(crate) async fn looks(shared: Arc<Shared>) {
    let mut ticks = every(LOOK_EVERY);
    loop {
        ticks.tick().await;
        let shared = Arc::clone(&shared);
        // It ends early by a panic, which is said where it happens: the next look may go better.
        let _ = tokio::task::spawn_blocking(move || shared.spiders.look_again()).await;
    }
}

/// Looks for lost records until the task is ended, and sends them on their way again.
pub(crate) async fn sweeps(shared: Arc<Shared>) {
    loop {
        match sweep(&shared).await {
            Ok(rest) => {
                shared.health.works("sweeping");
                sleep(rest).await;
            }
            Err(error) => {
                shared.health.fails("sweeping", &error);
                // After an outage, others first say what they hold.
                sleep(shared.settings.recovery.patience / 4).await;
            }
        }
    }
}

/// 1. Takes one step of the sweep.
/// 2. Sends a probe, if it is time.
/// 3. Sends the messages of lost records again.
/// 4. Tells crawls that wait for it how long the longest parked message is under way.
/// 5. Publishes dead letters of what could not be read.
/// 6. Announces ends.
async fn sweep(shared: &Shared) -> Result<Duration> {
    let (queue, frontier) = (&shared.ports.queue, &shared.ports.frontier);
    let found = frontier.sweep(&shared.id).await?;
    if let Some(mark) = found.probe {
        queue.probe(mark).await?;
        frontier.probed(mark).await?;
    }
    if !found.lost.is_empty() {
        info!(urls = found.lost.len(), "sending lost URLs on their way again");
        queue.publish(&found.lost).await?;
        for (crawl, urls) in urls_by_crawl(found.lost.into_iter()) {
            frontier.confirm(&crawl, &urls).await?;
        }
    }
    for crawl in &found.awaiting {
        frontier.await_parked(crawl, queue.longest_parked().await?).await?;
    }
    if !found.corrupt.is_empty() {
        queue.dead_letter(&found.corrupt).await?;
        frontier.buried(&found.corrupt).await?;
    }
    for ended in &found.ended {
        info!(crawl = %ended.crawl, status = %ended.status, "crawl has ended");
        queue.announce(ended).await?;
        frontier.announced(&ended.crawl_ref()).await?;
    }
    Ok(found.rest)
}

async fn beat(shared: &Shared, pages_per_second: f64) -> Result<()> {
    let beat = Heartbeat {
        worker: shared.id.clone(),
        version: env!("CARGO_PKG_VERSION"),
        in_flight: shared.hands.len(),
        pages_per_second,
        trouble: shared.health.trouble().or_else(|| shared.standstill.reason(shared.tally.ended())),
    };
    shared.ports.frontier.beat(&beat, BEAT_TTL).await
}

fn every(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

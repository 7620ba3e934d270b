//! What a worker does in the background: it shows that it lives, says what it waits for, keeps its places at hosts, and takes up what
//! changes in files.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};
use trawl_common::metrics;
use trawl_common::ports::{BeatReply, Heartbeat, Result};

use crate::schedule::standstill::STILL;
use crate::shared::Shared;

const BEAT_EVERY: Duration = Duration::from_secs(5);

const SUMMARY_EVERY: Duration = Duration::from_secs(60);

/// How soon a change of a spider's file is seen, and that no URL has ended for a while.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The first sign of life, before the first message.
pub(crate) async fn first_heartbeat(shared: &Shared) -> Result<()> {
    // Nobody knew it before.
    beat(shared, 0.0).await.map(drop)
}

/// Sends heartbeats until the task is ended. Stops the worker when people want it to end.
pub(crate) async fn heartbeats(shared: Arc<Shared>, stop: CancellationToken) {
    let mut ticks = every(BEAT_EVERY);
    let (mut before, mut since) = (shared.tally.done(), Instant::now());
    loop {
        ticks.tick().await;
        let pages = shared.tally.done();
        let rate = (pages - before) as f64 / since.elapsed().as_secs_f64().max(0.001);
        (before, since) = (pages, Instant::now());
        match beat(&shared, rate).await {
            Ok(reply) => {
                shared.health.works("beating");
                if reply == BeatReply::Drain && !stop.is_cancelled() {
                    info!("asked to end: finishing what has begun");
                    stop.cancel();
                }
            }
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
    let counts = || [tally.done(), tally.failed(), tally.other(), shared.frontier.activity().unproven];
    let (mut before, mut is_idle) = (counts(), true);
    loop {
        ticks.tick().await;
        let (now, in_hand) = (counts(), shared.frontier.activity().in_flight);
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

/// Keeps the places at hosts of requests that take long, until the task is ended.
pub(crate) async fn renew_places(shared: Arc<Shared>) {
    let period = shared.schedules.lapse / 3;
    let mut ticks = every(period);
    loop {
        ticks.tick().await;
        let slow = shared.schedules.in_flight.older_than(period);
        if !slow.is_empty()
            && let Err(error) = shared.ports.hosts.stay(&slow, shared.schedules.lapse).await
        {
            debug!(%error, "places not kept; they lapse");
        }
    }
}

/// Takes up what changes in the files of spiders, until the task is ended.
pub(crate) async fn reload_spiders(shared: Arc<Shared>) {
    let mut ticks = every(LOOK_EVERY);
    loop {
        ticks.tick().await;
        let shared = Arc::clone(&shared);
        // It ends early by a panic, which is said where it happens: the next look may go better.
        let _ = tokio::task::spawn_blocking(move || shared.spiders.look_again()).await;
    }
}

/// Says in the log what is waited for when no URL ends, once for each reason, until the task is ended. What a server keeps
/// from working is said where it fails.
pub(crate) async fn report_standstill(shared: Arc<Shared>) {
    let mut ticks = every(LOOK_EVERY);
    let mut said = None;
    loop {
        ticks.tick().await;
        let reason = shared.standstill.reason(shared.tally.ended());
        if let Some(waits) = reason.as_ref().filter(|_| reason != said && shared.health.trouble().is_none()) {
            info!(waits, "no page for {STILL:?}");
        }
        said = reason;
    }
}

async fn beat(shared: &Shared, pages_per_second: f64) -> Result<BeatReply> {
    metrics::in_flight(shared.frontier.activity().in_flight);
    let beat = Heartbeat {
        worker: shared.id.clone(),
        version: env!("CARGO_PKG_VERSION"),
        in_flight: shared.frontier.activity().in_flight,
        pages_per_second,
        latency: shared.latencies.take(),
        trouble: shared.health.trouble().or_else(|| shared.standstill.reason(shared.tally.ended())),
    };
    shared.frontier.beat(&beat).await
}

fn every(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

//! Background tasks of a worker: heartbeats, reports of idle reasons, extending the slots of long requests, and
//! reloading changed files.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};
use trawl_common::metrics;
use trawl_common::ports::{BeatReply, Heartbeat, Result};

use crate::schedule::standstill::STILL;
use crate::shared::Shared;
use crate::tally::Counts;

const BEAT_EVERY: Duration = Duration::from_secs(5);

const SUMMARY_EVERY: Duration = Duration::from_secs(60);

/// Interval within which the program of a cancelled task is ended.
const WATCH_EVERY: Duration = Duration::from_secs(2);

/// Interval at which spiders' files and the idle state are checked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Interval at which the files of programs are looked at.
const PROGRAMS_EVERY: Duration = Duration::from_secs(5);

/// Sends the first heartbeat, before the first message is received.
pub(crate) async fn first_heartbeat(shared: &Shared) -> Result<()> {
    // The reply is ignored: nobody can have sent a command to a worker that was unknown.
    beat(shared, 0.0).await.map(drop)
}

/// Sends heartbeats until the task is ended. Stops the worker on a user's command.
pub(crate) async fn heartbeats(shared: Arc<Shared>, stop: CancellationToken) {
    let mut ticks = every(BEAT_EVERY);
    let (mut before, mut since) = (shared.tally.ended(), Instant::now());
    loop {
        ticks.tick().await;
        let pages = shared.tally.ended();
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

/// Logs once a minute the work of that minute, the number of messages dropped as unproven, and what the worker waits
/// for. If there is nothing left to do, logs that once. Runs until the task is ended.
pub(crate) async fn summaries(shared: Arc<Shared>) {
    let mut ticks = every(SUMMARY_EVERY);
    ticks.tick().await;
    let counts = || (shared.tally.counts(), shared.frontier.activity().unproven);
    let (mut before, mut since, mut is_idle) = (counts(), Instant::now(), true);
    let worker = &shared.id;
    loop {
        ticks.tick().await;
        let (now, in_flight) = (counts(), shared.frontier.activity().in_flight);
        let was_idle = std::mem::replace(&mut is_idle, now == before && in_flight == 0);
        let Counts { done: pages, failed, other, retried, parked } = now.0 - before.0;
        let unproven = now.1 - before.1;
        let rate =
            format!("{:.1}", (pages + failed + other) as f64 / since.elapsed().as_secs_f64().max(0.001));
        (before, since) = (now, Instant::now());
        if is_idle {
            if !was_idle {
                info!(%worker, "idle");
            }
            continue;
        }
        let waits = shared.waits();
        info!(
            %worker, pages, failed, other, retried, parked, unproven, in_flight, pages_per_second = %rate,
            waits = waits.as_deref(), "the last minute"
        );
    }
}

/// Renews the in-flight state of long requests at their hosts, until the task is ended.
pub(crate) async fn renew_in_flight(shared: Arc<Shared>) {
    let period = shared.schedules.lapse / 3;
    let mut ticks = every(period);
    loop {
        ticks.tick().await;
        let slow = shared.schedules.in_flight.older_than(period);
        if !slow.is_empty()
            && let Err(error) = shared.ports.hosts.stay(&slow, shared.schedules.lapse).await
        {
            debug!(%error, "requests that take long will no longer count as in flight");
        }
    }
}

/// Reloads changed spider files, until the task is ended.
pub(crate) async fn reload_spiders(shared: Arc<Shared>) {
    let mut ticks = every(LOOK_EVERY);
    loop {
        ticks.tick().await;
        let shared = Arc::clone(&shared);
        // It ends early only by a panic, which is logged where it happens: the next check may succeed.
        let _ = tokio::task::spawn_blocking(move || shared.spiders.look_again()).await;
    }
}

/// Looks for changed files of programs, until the task is ended.
pub(crate) async fn look_at_programs(shared: Arc<Shared>) {
    let mut ticks = every(PROGRAMS_EVERY);
    loop {
        ticks.tick().await;
        let shared = Arc::clone(&shared);
        // As above.
        let _ = tokio::task::spawn_blocking(move || shared.spiders.look_at_programs()).await;
    }
}

/// Ends programs whose tasks are no longer this worker's, until the task is ended.
pub(crate) async fn watch_programs(shared: Arc<Shared>) {
    let mut ticks = every(WATCH_EVERY);
    loop {
        ticks.tick().await;
        if let Err(error) = shared.watch.look(&*shared.frontier).await {
            return shared.health.ends_by(error);
        }
    }
}

/// Logs the idle reason when no URL ends, once for each reason, until the task is ended. An unavailable server is
/// logged where the call fails.
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
        trouble: shared.waits(),
        lacks: shared.standstill.lacks(),
        running: shared.watch.tasks(),
        programs: shared.spiders.programs(),
    };
    shared.frontier.beat(&beat).await
}

fn every(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

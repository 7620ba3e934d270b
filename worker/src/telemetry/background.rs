//! Regular reports of a worker: heartbeats, summaries, and idle reasons.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::info;
use trawl_common::metrics;
use trawl_common::ports::{BeatReply, Frontier, Heartbeat, Result};

use super::idle_reasons::{IdleReasons, STILL};
use super::latencies::Latencies;
use super::tally::{Counts, Tally};
use crate::context::Context;
use crate::programs::Watch;
use crate::spiders::Spiders;

const BEAT_INTERVAL: Duration = Duration::from_secs(5);

const SUMMARY_INTERVAL: Duration = Duration::from_secs(60);

/// Interval at which the idle state is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Reports on a worker to the fleet, and in its own log.
pub(crate) struct Reporter {
    pub(crate) context: Arc<Context>,
    pub(crate) frontier: Arc<dyn Frontier>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) latencies: Arc<Latencies>,
    pub(crate) idle_reasons: Arc<IdleReasons>,
    /// The work that programs are doing.
    pub(crate) watch: Arc<Watch>,
    pub(crate) spiders: Arc<Spiders>,
    pub(crate) browsers: Arc<trawl_browser::Counts>,
}

impl Reporter {
    /// Sends the first heartbeat, before the first message is received.
    pub(crate) async fn first_heartbeat(&self) -> Result<()> {
        // The reply is ignored: nobody can have sent a command to a worker that was unknown.
        self.beat(0.0).await.map(drop)
    }

    /// Sends heartbeats until the task is ended. Stops the worker on a user's command.
    pub(crate) async fn heartbeats(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = every(BEAT_INTERVAL);
        let (mut before, mut since) = (self.tally.ended(), Instant::now());
        loop {
            ticks.tick().await;
            let pages = self.tally.ended();
            let rate = (pages - before) as f64 / since.elapsed().as_secs_f64().max(0.001);
            (before, since) = (pages, Instant::now());
            match self.beat(rate).await {
                Ok(reply) => {
                    self.context.health.report_ok("beating");
                    if reply == BeatReply::Drain && !stop.is_cancelled() {
                        info!("asked to end: finishing what has begun");
                        stop.cancel();
                    }
                }
                Err(error) => self.context.health.report_failure("beating", &error),
            }
        }
    }

    /// Logs once a minute the work of that minute, the number of messages dropped as unproven, and what the worker
    /// waits for. If there is nothing left to do, logs that once. Runs until the task is ended.
    pub(crate) async fn summaries(self: Arc<Self>) {
        let mut ticks = every(SUMMARY_INTERVAL);
        ticks.tick().await;
        let counts = || (self.tally.counts(), self.frontier.activity().unproven);
        let (mut before, mut since, mut is_idle) = (counts(), Instant::now(), true);
        let worker = &self.context.id;
        loop {
            ticks.tick().await;
            let (now, in_flight) = (counts(), self.frontier.activity().in_flight);
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
            let waits = self.waits();
            info!(
                %worker, pages, failed, other, retried, parked, unproven, in_flight, pages_per_second = %rate,
                waits = waits.as_deref(), "the last minute"
            );
        }
    }

    /// Logs the idle reason when no URL ends, once for each reason, until the task is ended. An unavailable server is
    /// logged where the call fails.
    pub(crate) async fn report_standstill(self: Arc<Self>) {
        let mut ticks = every(CHECK_INTERVAL);
        let mut said = None;
        loop {
            ticks.tick().await;
            let reason = self.idle_reasons.reason(self.tally.ended());
            if let Some(waits) =
                reason.as_ref().filter(|_| reason != said && self.context.health.trouble().is_none())
            {
                info!(waits, "no page for {STILL:?}");
            }
            said = reason;
        }
    }

    async fn beat(&self, pages_per_second: f64) -> Result<BeatReply> {
        let browsers = self.browsers.now();
        metrics::in_flight(self.frontier.activity().in_flight);
        browsers.iter().for_each(metrics::browsers);
        let beat = Heartbeat {
            worker: self.context.id.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            in_flight: self.frontier.activity().in_flight,
            pages_per_second,
            latency: self.latencies.take(),
            trouble: self.waits(),
            lacks: self.idle_reasons.lacks(),
            troubles: self.context.health.spider_troubles(),
            running: self.watch.tasks(),
            programs: self.spiders.programs(),
            outdated: self.spiders.outdated(),
            behind: self.spiders.behind(),
            browsers,
        };
        self.frontier.beat(&beat).await
    }

    /// Returns the problem that keeps this worker from its work, or the reason why no URL has ended for a
    /// while.
    fn waits(&self) -> Option<String> {
        self.context.health.trouble().or_else(|| self.idle_reasons.reason(self.tally.ended()))
    }
}

fn every(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

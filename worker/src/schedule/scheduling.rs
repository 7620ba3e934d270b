//! The state by which this worker's hosts are asked.

use std::sync::Arc;

use tokio::time::{MissedTickBehavior, interval};
use tracing::debug;
use trawl_common::host_schedules::HostSchedules;
use trawl_common::ports::Hosts;

use super::domains::Domains;
use super::polite::PoliteClient;
use super::wanting::Wanting;
use crate::context::Context;
use crate::telemetry::host_log::HostLog;
use crate::telemetry::idle_reasons::IdleReasons;
use crate::telemetry::lateness::Lateness;

/// The state by which this worker's hosts are asked, for the scheduler and for redirects of running fetches.
pub(crate) struct Scheduling {
    pub(crate) context: Arc<Context>,
    /// The schedules of hosts, their robots.txt files, and the exchange of slots, which programs use as well.
    pub(crate) asker: PoliteClient,
    pub(crate) domains: Arc<Domains>,
    pub(crate) idle_reasons: Arc<IdleReasons>,
    pub(crate) wanting: Wanting,
    pub(crate) lateness: Arc<Lateness>,
}

impl Scheduling {
    pub(crate) fn new(context: &Arc<Context>, hosts: Arc<dyn Hosts>, idle_reasons: Arc<IdleReasons>) -> Self {
        let settings = &context.settings;
        // The same expiry as a URL's lease.
        let lapse = settings.recovery.lost_after / 4;
        let schedules = HostSchedules::new(hosts, Arc::clone(&context.health), lapse, settings);
        let asker = PoliteClient {
            settings: Arc::clone(settings),
            schedules,
            robots: Arc::default(),
            exchange: Arc::default(),
            host_log: Some(Arc::new(HostLog::new(context.log.clone()))),
        };
        let lateness = Arc::<Lateness>::default();
        let domains = Arc::new(Domains::new(&settings.worker, Arc::clone(&lateness)));
        let wanting = Wanting::default();
        Self { context: Arc::clone(context), asker, domains, idle_reasons, wanting, lateness }
    }

    /// Renews the in-flight state of long requests at their hosts, until the future is dropped.
    pub(crate) async fn renew_in_flight(self: Arc<Self>) {
        let HostSchedules { hosts, in_flight, lapse, .. } = &self.asker.schedules;
        let period = *lapse / 3;
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let slow = in_flight.older_than(period);
            if !slow.is_empty()
                && let Err(error) = hosts.stay(&slow, *lapse).await
            {
                debug!(%error, "requests that take long will no longer count as in flight");
            }
        }
    }

    /// Reports finished requests to their hosts, until the future is dropped.
    pub(crate) async fn free_in_flight(self: Arc<Self>) {
        let HostSchedules { hosts, in_flight, .. } = &self.asker.schedules;
        match in_flight.freeing(&**hosts).await {}
    }
}

//! The shared state of all parts of a worker.

use std::sync::Arc;

use trawl_common::fleet_log::LogWriter;
use trawl_common::health::Health;
use trawl_common::host_schedules::HostSchedules;
use trawl_common::names::WorkerId;
use trawl_common::ports::{Frontier, Ports};
use trawl_common::settings::Settings;
use trawl_web::Threads;

use crate::fetch::domains::Domains;
use crate::handlers::Watch;
use crate::host_log::HostLog;
use crate::known_links::KnownLinks;
use crate::latencies::Latencies;
use crate::parse::Parser;
use crate::schedule::exchange::SlotExchange;
use crate::schedule::robots_memory::RobotsMemory;
use crate::schedule::standstill::Standstill;
use crate::spiders::Spiders;
use crate::tally::Tally;
use crate::url_log::UrlLog;
use crate::wanting::Wanting;

/// The ports, the settings, and the state that the parts of a worker share.
pub(crate) struct Shared {
    pub(crate) id: WorkerId,
    pub(crate) ports: Ports,
    /// For claiming and settling URLs.
    pub(crate) frontier: Arc<dyn Frontier>,
    pub(crate) settings: Settings,
    pub(crate) spiders: Arc<Spiders>,
    pub(crate) parser: Parser,
    pub(crate) robots: Arc<RobotsMemory>,
    pub(crate) schedules: HostSchedules,
    /// The slot exchange, in which programs' requests wait.
    pub(crate) exchange: Arc<SlotExchange>,
    pub(crate) domains: Arc<Domains>,
    /// The threads for fetches that may keep them busy.
    pub(crate) threads: Threads,
    pub(crate) health: Arc<Health>,
    pub(crate) tally: Tally,
    pub(crate) latencies: Latencies,
    /// The fleet's log.
    pub(crate) log: LogWriter,
    pub(crate) url_log: UrlLog,
    pub(crate) standstill: Standstill,
    pub(crate) wanting: Wanting,
    pub(crate) known_links: KnownLinks,
    pub(crate) host_log: Arc<HostLog>,
    /// The work that programs are doing.
    pub(crate) watch: Watch,
}

impl Shared {
    /// Returns the problem that keeps this worker from its work, or the reason why no URL has ended for a
    /// while.
    pub(crate) fn waits(&self) -> Option<String> {
        self.health.trouble().or_else(|| self.standstill.reason(self.tally.ended()))
    }
}

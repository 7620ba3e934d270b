//! The context of every part of a worker.

use std::sync::Arc;

use trawl_common::fleet_log::LogWriter;
use trawl_common::health::Health;
use trawl_common::names::WorkerId;
use trawl_common::settings::Settings;

/// The identity of a worker, its settings, and the destinations of its reports.
pub(crate) struct Context {
    pub(crate) id: WorkerId,
    pub(crate) settings: Arc<Settings>,
    pub(crate) health: Arc<Health>,
    /// The fleet's log.
    pub(crate) log: LogWriter,
}

//! The writing of the fleet's log, from the start of a worker to its end.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use trawl_common::fleet_log::LogWriter;
use trawl_common::names::WorkerId;
use trawl_common::ports::{Logs, WorkerPorts};
use trawl_common::settings::Settings;

/// Writes entries in the background until it is closed or dropped.
pub(super) struct FleetLog {
    pub(super) writer: LogWriter,
    /// The writer of the list of ended tasks.
    pub(super) ended_tasks: LogWriter,
    /// Cancelled when there are no more entries to come.
    written: CancellationToken,
    writing: AbortOnDropHandle<()>,
}

impl FleetLog {
    /// Starts to write to the destinations that the settings name.
    pub(super) fn start(ports: &WorkerPorts, settings: &Settings, id: &WorkerId) -> Self {
        let unless_off = |log: &Arc<dyn Logs>| (settings.log.keep > 0).then(|| Arc::clone(log));
        let history = ports.history.clone().filter(|_| settings.history.logs);
        let (writer, targets) = LogWriter::new(id, unless_off(&ports.logs), history);
        let (ended_tasks, ends) = LogWriter::new(id, unless_off(&ports.ended_tasks), None);
        let written = CancellationToken::new();
        let (entries, ends) = (targets.run(written.clone()), ends.run(written.clone()));
        let writing = AbortOnDropHandle::new(tokio::spawn(async {
            tokio::join!(entries, ends);
        }));
        Self { writer, ended_tasks, written, writing }
    }

    /// Writes what is left, within this time.
    pub(super) async fn close(self, within: Duration) {
        self.written.cancel();
        let _ = timeout(within, self.writing).await;
    }
}

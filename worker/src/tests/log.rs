//! The fleet's log in tests.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use trawl_backends::embedded::Embedded;
use trawl_common::fleet_log::{LogTargets, LogWriter};
use trawl_common::logs::LogEntry;
use trawl_common::ports::{LogPlace, Logs};

/// A log of its own.
pub(crate) struct OwnLog {
    pub(crate) writer: LogWriter,
    targets: LogTargets,
    log: Arc<dyn Logs>,
}

impl OwnLog {
    pub(crate) fn new() -> Self {
        let log = Embedded::in_memory().unwrap().logs();
        let (writer, targets) = LogWriter::new(&"w-1".parse().unwrap(), Some(log.clone()), None);
        Self { writer, targets, log }
    }

    /// The entries written to it.
    pub(crate) async fn entries(self) -> Vec<LogEntry> {
        let stop = CancellationToken::new();
        stop.cancel();
        self.targets.run(stop).await;
        let part = self.log.after(LogPlace::BEGIN, 100).await.unwrap();
        part.lines.into_iter().map(|line| line.entry).collect()
    }
}

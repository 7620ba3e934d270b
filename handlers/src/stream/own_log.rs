//! Log entries of a program that have no request `id`. They go to the log of the worker, up to a limit.

use tracing::{debug, info, warn};
use trawl_common::handler::{LogLine, MAX_LOGS};
use trawl_common::logs::LogLevel;

/// The log of a process.
#[derive(Default)]
pub(super) struct OwnLog {
    /// Number of entries since the last answer.
    entries: usize,
}

impl OwnLog {
    /// Resets the limit, as the process has answered a request.
    pub(super) fn answered(&mut self) {
        self.entries = 0;
    }

    /// Writes entries up to the limit, and warns once when more are left out.
    pub(super) fn write(&mut self, lines: Vec<LogLine>) {
        let (lines, is_cut) = self.take(lines);
        for LogLine { level, message } in lines {
            match level {
                LogLevel::Debug | LogLevel::Trace => debug!(message, "a program says"),
                level => info!(%level, message, "a program says"),
            }
        }
        if is_cut {
            warn!("what else a program logs is left out until it answers something");
        }
    }

    /// Returns the entries within the limit, and whether these are the first that are cut.
    fn take(&mut self, mut lines: Vec<LogLine>) -> (Vec<LogLine>, bool) {
        let left = MAX_LOGS.saturating_sub(self.entries);
        let was_whole = self.entries <= MAX_LOGS;
        self.entries = self.entries.saturating_add(lines.len());
        lines.truncate(left);
        (lines, was_whole && self.entries > MAX_LOGS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_only_logs_is_cut_once_and_logged_again_when_it_has_answered() {
        let mut log = OwnLog::default();
        let mut take = |count| {
            let (lines, is_cut) = log.take(vec![LogLine::new(LogLevel::Info, "x"); count]);
            (lines.len(), is_cut)
        };
        assert_eq!(take(MAX_LOGS - 1), (MAX_LOGS - 1, false));
        assert_eq!(take(1), (1, false));
        assert_eq!(take(1), (0, true));
        assert_eq!(take(1_000_000), (0, false));
        log.answered();
        assert_eq!(log.take(vec![LogLine::new(LogLevel::Info, "x"); 2 * MAX_LOGS]).0.len(), MAX_LOGS);
    }
}

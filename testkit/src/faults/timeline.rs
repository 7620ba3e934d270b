//! The log of a run: printed while it happens, and again when a check fails.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The timeline of a run. Clones share it.
#[derive(Clone)]
pub struct Timeline {
    start: Instant,
    /// Whether each line is printed at once.
    aloud: bool,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Timeline {
    /// Returns a timeline. Times are since `start`.
    pub fn new(start: Instant, aloud: bool) -> Self {
        Self { start, aloud, lines: Arc::default() }
    }

    /// Adds a line.
    pub fn note(&self, line: impl std::fmt::Display) {
        let line = format!("{:8.1} s  {line}", self.start.elapsed().as_secs_f64());
        if self.aloud {
            eprintln!("{line}");
        }
        self.lines.lock().push(line);
    }

    /// Returns all lines.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }
}

//! Progress on a terminal or in a log.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;

use crate::colour::has_colours;

/// Minimum time between two lines if standard error is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Shows the progress of the work: on a terminal in one line that is redrawn, elsewhere in a new line every few
/// seconds.
#[derive(Clone, Debug)]
pub struct Progress(Shown);

#[derive(Clone, Debug)]
enum Shown {
    Bar(ProgressBar),
    /// With the time of the last line.
    Lines(Arc<Mutex<Instant>>),
    Nothing,
}

impl Default for Progress {
    /// Returns a progress that shows nothing before the first [`Progress::show`].
    fn default() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(Shown::Lines(Arc::new(Mutex::new(Instant::now()))));
        }
        let bar = ProgressBar::new_spinner();
        let template = match has_colours() {
            true => "{spinner:.cyan} {elapsed:.dim} {wide_msg}",
            false => "{spinner} {elapsed} {wide_msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        Self(Shown::Bar(bar))
    }
}

impl Progress {
    /// Returns a progress that never shows anything.
    pub fn none() -> Self {
        Self(Shown::Nothing)
    }

    /// Replaces the line on a terminal; elsewhere writes another if the last is old enough.
    pub fn show(&self, line: impl Into<String>) {
        match &self.0 {
            Shown::Bar(bar) => bar.set_message(line.into()),
            Shown::Lines(last) => {
                let mut last = last.lock();
                if last.elapsed() >= LINE_INTERVAL {
                    anstream::eprintln!("{}", line.into());
                    *last = Instant::now();
                }
            }
            Shown::Nothing => {}
        }
    }

    /// Removes the line.
    pub fn clear(&self) {
        if let Shown::Bar(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

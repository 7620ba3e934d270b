//! Progress on a terminal, and numbers as people read them.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// One line at the bottom of a terminal that says how far the work is. Nothing in a pipe.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Shows nothing before the first [`Progress::say`].
    pub fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        if std::io::stderr().is_terminal() {
            if let Ok(style) = ProgressStyle::with_template("{spinner:.cyan} {elapsed:.dim} {wide_msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
        } else {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        Self { bar }
    }

    /// Replaces the line.
    pub fn say(&self, line: impl Into<String>) {
        self.bar.set_message(line.into());
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

/// `1234567` as `1,234,567`.
pub fn count(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

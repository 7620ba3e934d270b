//! Progress on a terminal or in a log, and numbers with separators.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::colour::has_colours;

/// The time between two lines where standard error is a file or a pipe.
const EVERY: Duration = Duration::from_secs(5);

/// Shows how far the work is: on a terminal in one line that is redrawn, elsewhere in a new line every few seconds.
#[derive(Clone, Debug)]
pub struct Progress(Shown);

#[derive(Clone, Debug)]
enum Shown {
    Bar(ProgressBar),
    /// With the instant of the last line.
    Lines(Arc<Mutex<Instant>>),
    Nothing,
}

impl Default for Progress {
    /// Shows nothing before the first [`Progress::show`].
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
    /// Shows nothing.
    pub fn none() -> Self {
        Self(Shown::Nothing)
    }

    /// Replaces the line, or writes another if the last is old enough.
    pub fn show(&self, line: impl Into<String>) {
        match &self.0 {
            Shown::Bar(bar) => bar.set_message(line.into()),
            Shown::Lines(last) => {
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                if last.elapsed() >= EVERY {
                    anstream::eprintln!("{}", line.into());
                    *last = Instant::now();
                }
            }
            Shown::Nothing => {}
        }
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if let Shown::Bar(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// `1 task`, `1,234 tasks`.
pub fn counted(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}

/// `1234567` as `1,234,567`.
pub fn count(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

//! The outcome of a task or a page that was given to a program.

use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::handler::{Answer, LogLine};
use trawl_common::logs::LogLevel;
use trawl_common::text::printable;

use crate::exec::Report;
use crate::items_file::ItemsFile;
use crate::supervised::End;

/// The outcome of one task or page.
#[derive(Clone, Debug)]
pub enum Ended {
    /// The program answered, possibly with a failure. Carries the file of items that the answer names, unless it
    /// failed.
    Answered(Answer, Option<ItemsFile>),
    /// The program failed, or its output is not a valid answer.
    Failed {
        /// The failure, of class `handler`.
        failure: Failure,
        /// The log entries from before the failure, and the end of standard error.
        logs: Vec<LogLine>,
    },
    /// The program cannot be run on this machine, and was given nothing.
    NotRun(String),
}

impl Ended {
    /// Returns the outcome for an answer. `taken` is the result of taking the file of items that it names, if any.
    pub(crate) fn answered(answer: Answer, taken: Option<Result<ItemsFile, String>>) -> Self {
        match taken.transpose() {
            Ok(file) => Self::Answered(answer, file),
            Err(why) => Self::Failed { failure: Failure::new(Class::Handler, why), logs: answer.logs },
        }
    }

    /// Checks the whole file of items, if there is one; the outcome becomes a failure if a line of it is not an item.
    pub(crate) async fn checked(self) -> Self {
        match self {
            Self::Answered(answer, Some(file)) => {
                let checked = file.checked().await;
                Self::answered(answer, Some(checked))
            }
            other => other,
        }
    }

    /// Returns a failure whose detail is `what`, followed by the last line of standard error; a program that could not
    /// even be started is not to blame.
    pub(crate) fn failed(what: &str, end: &End, mut logs: Vec<LogLine>) -> Self {
        if let Some(report @ Report::NotStarted(_)) = &end.report {
            return Self::NotRun(report.to_string());
        }
        let detail = with_last_line(what, end);
        logs.extend(stderr_entry(end));
        Self::Failed { failure: Failure::new(Class::Handler, detail), logs }
    }
}

/// Returns `what`, followed by the last line of standard error.
pub(crate) fn with_last_line(what: &str, end: &End) -> String {
    let stderr = String::from_utf8_lossy(&end.stderr);
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
    last.map_or_else(|| what.to_owned(), |last| format!("{what}: {}", printable(last.trim(), 400)))
}

/// Returns the end of standard error as a log entry, or `None` if it is empty or was shown already.
pub(crate) fn stderr_entry(end: &End) -> Option<LogLine> {
    let stderr = String::from_utf8_lossy(&end.stderr);
    let stderr = stderr.trim_end();
    (!stderr.is_empty() && !end.is_shown).then(|| LogLine::new(LogLevel::Error, stderr))
}

//! What comes of a task or a page that was given to a program.

use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::handler::{Answer, LogLine};
use trawl_common::logs::LogLevel;
use trawl_common::text::printable;

use crate::items_file::ItemsFile;
use crate::supervised::End;

/// What came of one task or page.
#[derive(Clone, Debug)]
pub enum Ended {
    /// The program answered, perhaps that it failed; with the file of items that it named, if it did its part.
    Answered(Answer, Option<ItemsFile>),
    /// The program failed at it, or what it said is no answer.
    Failed {
        /// What happened, of class `handler`.
        failure: Failure,
        /// What the program said before: its entries for the log, and the end of its standard error.
        logs: Vec<LogLine>,
    },
    /// The program cannot be run on this machine: it was given nothing.
    NotRun(String),
}

impl Ended {
    /// What comes of an answer whose file of items was to be taken, if it names one.
    pub(crate) fn answered(answer: Answer, taken: Option<Result<ItemsFile, String>>) -> Self {
        match taken.transpose() {
            Ok(file) => Self::Answered(answer, file),
            Err(why) => Self::Failed { failure: Failure::new(Class::Handler, why), logs: answer.logs },
        }
    }

    /// The same, once all of its file of items was looked at.
    pub(crate) async fn checked(self) -> Self {
        match self {
            Self::Answered(answer, Some(file)) => {
                let checked = file.checked().await;
                Self::answered(answer, Some(checked))
            }
            other => other,
        }
    }

    /// That the program failed in the way that `what` says, and how it ended.
    pub(crate) fn failed(what: &str, end: &End, mut logs: Vec<LogLine>) -> Self {
        let stderr = String::from_utf8_lossy(&end.stderr);
        let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
        let detail =
            last.map_or_else(|| what.to_owned(), |last| format!("{what}: {}", printable(last.trim(), 400)));
        logs.extend(stderr_entry(&stderr));
        Self::Failed { failure: Failure::new(Class::Handler, detail), logs }
    }
}

/// What the end of a standard error adds to the log.
pub(crate) fn stderr_entry(stderr: &str) -> Option<LogLine> {
    let stderr = stderr.trim_end();
    (!stderr.is_empty()).then(|| LogLine::new(LogLevel::Error, stderr))
}

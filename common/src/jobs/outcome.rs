//! How a job ends.

use std::fmt;

use super::JobStatus;
use crate::text::printable;

/// The longest text that is kept of what went wrong, in bytes.
const MAX_BYTES: usize = 1024;

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// Its crawl is finished.
    Finished {
        /// Which of its sources could not be read, if there were any.
        problem: Option<Problem>,
    },
    /// It could not be run.
    Failed(Problem),
    /// Somebody ended it before its time.
    Cancelled,
}

impl JobOutcome {
    /// A failure with this description.
    pub fn failed(text: impl fmt::Display) -> Self {
        Self::Failed(Problem::new(text))
    }

    /// The same in a word.
    pub fn status(&self) -> JobStatus {
        match self {
            Self::Finished { .. } => JobStatus::Finished,
            Self::Failed(_) => JobStatus::Failed,
            Self::Cancelled => JobStatus::Cancelled,
        }
    }

    /// What went wrong, if anything did.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Finished { problem } => problem.as_ref(),
            Self::Failed(problem) => Some(problem),
            Self::Cancelled => None,
        }
    }
}

/// What went wrong with a job: one line for people, of at most 1 KB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem(String);

impl Problem {
    /// What `text` says.
    pub fn new(text: impl fmt::Display) -> Self {
        Self(printable(&text.to_string(), MAX_BYTES))
    }

    /// The line.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

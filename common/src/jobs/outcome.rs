//! The outcome of a job.

use std::fmt;

use super::JobStatus;
use crate::as_text::text;
use crate::text::printable;

/// Maximum length of the description of a problem, in bytes.
const MAX_BYTES: usize = 1024;

/// The outcome of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// Its crawl is finished.
    Finished {
        /// The sources that could not be read, if any.
        problem: Option<Problem>,
    },
    /// It could not be run.
    Failed(Problem),
    /// Somebody cancelled it.
    Cancelled,
}

impl JobOutcome {
    /// Returns a failure with this description.
    pub fn failed(text: impl fmt::Display) -> Self {
        Self::Failed(Problem::new(text))
    }

    /// Returns the status that it corresponds to.
    pub fn status(&self) -> JobStatus {
        match self {
            Self::Finished { .. } => JobStatus::Finished,
            Self::Failed(_) => JobStatus::Failed,
            Self::Cancelled => JobStatus::Cancelled,
        }
    }

    /// Returns the problem, if any.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Finished { problem } => problem.as_ref(),
            Self::Failed(problem) => Some(problem),
            Self::Cancelled => None,
        }
    }
}

/// A problem of a job: one line for people, of at most 1 KB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem(String);

text!(Problem);

impl Problem {
    /// Creates a problem from its description, which is made printable.
    pub fn new(text: impl fmt::Display) -> Self {
        Self(printable(&text.to_string(), MAX_BYTES))
    }
}

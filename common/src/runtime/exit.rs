//! Exit codes of every binary, in one place.

use std::process::ExitCode;

use crate::frontier::crawl::{CrawlState, CrawlStats};

/// The outcome of a run, as an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All done.
    Ok,
    /// The run failed, or part of its input could not be read.
    Failed,
    /// Bad usage or settings, or a server that rejects the settings.
    Usage,
    /// Finished, with URLs that failed or entries of sources that are no URLs.
    FailedUrls,
    /// The crawl was cancelled.
    Cancelled,
    /// Finished without the expected result.
    Unmet,
    /// A server in the settings is unavailable or full: the same command may succeed later.
    Unavailable,
    /// A wait timed out.
    TimedOut,
    /// Ended by a signal with this number.
    Signal(u8),
}

impl Exit {
    /// Returns the worse of two: a failure that hides the outcome is worse than any outcome.
    #[must_use]
    pub fn or_worse(self, other: Self) -> Self {
        let badness = |exit: Self| match exit {
            Self::Ok => 0,
            Self::FailedUrls => 1,
            Self::Unmet => 2,
            Self::Cancelled => 3,
            Self::TimedOut => 4,
            Self::Unavailable => 5,
            Self::Failed => 6,
            Self::Usage => 7,
            Self::Signal(_) => 8,
        };
        if badness(other) > badness(self) { other } else { self }
    }

    /// The exit code of the process.
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::FailedUrls => 3,
            Self::Cancelled => 4,
            Self::Unavailable => 5,
            Self::Unmet => 6,
            Self::TimedOut => 124,
            Self::Signal(number) => 128 + number,
        }
    }
}

impl From<&CrawlStats> for Exit {
    /// Returns the exit code for the end of a crawl.
    fn from(stats: &CrawlStats) -> Self {
        match stats.status {
            CrawlState::Cancelled => Self::Cancelled,
            _ if stats.incomplete => Self::Failed,
            _ if stats.counts.failed > 0 || stats.invalid() > 0 => Self::FailedUrls,
            _ => Self::Ok,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_worse_than_any_end_of_a_crawl() {
        let from_good_to_bad = [
            Exit::Ok,
            Exit::FailedUrls,
            Exit::Unmet,
            Exit::Cancelled,
            Exit::TimedOut,
            Exit::Unavailable,
            Exit::Failed,
            Exit::Usage,
        ];
        for (at, exit) in from_good_to_bad.into_iter().enumerate() {
            for other in from_good_to_bad {
                let worse = if from_good_to_bad[at..].contains(&other) { other } else { exit };
                assert_eq!(exit.or_worse(other), worse, "{exit:?} {other:?}");
            }
        }
    }
}
